//! Views of runs for people and programs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;
use switchyard_api::{
    ChildView, MissingPayload, NodeView, NodesInOrder, PatchView, RunView, Wait, payload_reference,
};
use switchyard_core::Payload;
use switchyard_core::ir::Role;
use switchyard_core::run::{EventKind, NodeRun, NodeState, Patched, Run, WaitFor, Waiting};
use switchyard_store::{RunFilter, RunOrder, StoreError};

use super::waits::reasons;
use super::{EngineError, History};

/// How many children the view of a run lists; the filter `parent` finds them all.
const CHILDREN_SHOWN: usize = 200;

/// Loads payloads for a view, and records those that cannot be loaded.
struct Loading<'h> {
    history: &'h History,
    missing: Vec<MissingPayload>,
}

impl Loading<'_> {
    /// The text of a payload, or a reference to one that is gone or damaged. `path` is its place in the view.
    async fn text(
        &mut self,
        payload: &Payload,
        path: impl FnOnce() -> String,
    ) -> Result<Box<RawValue>, EngineError> {
        match (self.history.payloads().load_text(payload).await, payload) {
            (Err(error), Payload::Cas(reference)) if error.is_loss() => {
                self.missing.push(MissingPayload {
                    path: path(),
                    payload: reference.to_string(),
                    bytes: reference.bytes,
                    reason: error.to_string(),
                });
                let named = serde_json::value::to_raw_value(&payload_reference(*reference));
                Ok(named.unwrap_or_else(|_| RawValue::NULL.to_owned()))
            }
            (text, _) => Ok(text?),
        }
    }
}

impl History {
    /// The view of a run, with every payload loaded, or a reference if the payload is gone.
    pub async fn view(&self, run: &Run) -> Result<RunView, EngineError> {
        let mut loading = Loading { history: self, missing: Vec::new() };
        let mut children = self.children(run).await?;
        let cached = self.cached_nodes(run).await?;
        let mut nodes = Vec::new();
        for ix in run.ir.indices() {
            let (node, spec) = (run.node(ix), run.ir.node(ix));
            // Hidden steps are shown once they have started.
            if spec.role == Role::Step || node.has_started() {
                let output =
                    loading.text(&node.output_or_null(), || format!("nodes.{}.output", spec.id)).await?;
                let mut view = node_view(node, output, cached.contains(&spec.id));
                view.children = children.remove(&spec.id).unwrap_or_default();
                nodes.push((spec.id.clone(), view));
            }
        }
        let input = loading.text(&run.accepted.input, || "input".to_owned()).await?;
        let output = loading.text(&run.output, || "output".to_owned()).await?;
        Ok(RunView {
            run_id: run.id,
            status: run.status(),
            workflow: run.accepted.workflow.clone(),
            definition: run.ir.hash,
            version: run.version,
            attempt: run.attempt,
            last_seq: run.seq,
            accepted_at: run.accepted_at,
            start_at: run.accepted.start_at,
            priority: run.accepted.priority,
            ended_at: run.ended_at,
            parent: run.accepted.parent.as_ref().map(|parent| parent.run),
            parent_node: run.accepted.parent.as_ref().map(|parent| parent.node.clone()),
            schedule: run.accepted.schedule.clone(),
            labels: run.accepted.labels.clone(),
            forked_from: run.accepted.forked_from.as_ref().map(|origin| origin.run),
            input,
            output,
            error: run.error.clone(),
            nodes: NodesInOrder(nodes),
            patches: self.patches(run).await?,
            waiting: reasons(run, None),
            missing: loading.missing,
        })
    }

    /// The child runs of each node, oldest first, at most [`CHILDREN_SHOWN`] of the run.
    async fn children(&self, run: &Run) -> Result<HashMap<Arc<str>, Vec<ChildView>>, EngineError> {
        let filter = RunFilter {
            parent: Some(run.id),
            order: RunOrder::Oldest,
            limit: CHILDREN_SHOWN,
            ..RunFilter::default()
        };
        let found = match self.archive.runs(&filter).await {
            Ok(page) => page.items,
            // While the archive is unavailable, the state of a run is shown without its children.
            Err(StoreError::Unavailable(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let mut children: HashMap<Arc<str>, Vec<ChildView>> = HashMap::new();
        for child in found {
            let Some(node) = child.parent_node else { continue };
            children.entry(node).or_default().push(ChildView { run_id: child.run_id, status: child.status });
        }
        Ok(children)
    }

    /// The nodes whose output came from the cache. Only the history tells, and it is read only if a node has a cache.
    async fn cached_nodes(&self, run: &Run) -> Result<HashSet<Arc<str>>, EngineError> {
        match self.marked_as_cached(run).await {
            // Unknown while the archive is unavailable, like the children.
            Err(EngineError::Store(StoreError::Unavailable(_))) => Ok(HashSet::new()),
            known => known,
        }
    }

    async fn marked_as_cached(&self, run: &Run) -> Result<HashSet<Arc<str>>, EngineError> {
        let mut cached = HashSet::new();
        if !self.definition(run.ir.hash).await?.contains("\"cache\":{") {
            return Ok(cached);
        }
        for event in self.events(run.id, 0, Some(run.seq)).await? {
            match event.kind {
                EventKind::NodeSucceeded { node, cached: true, .. } => _ = cached.insert(node),
                EventKind::NodeStarted { node, .. } => _ = cached.remove(&node),
                _ => {}
            }
        }
        Ok(cached)
    }

    /// The patches of a run, oldest first.
    pub async fn patches(&self, run: &Run) -> Result<Vec<PatchView>, EngineError> {
        let mut patches = Vec::with_capacity(run.patches.len());
        for patch in &run.patches {
            patches.push(self.patch_view(patch).await?);
        }
        Ok(patches)
    }

    async fn patch_view(&self, patched: &Patched) -> Result<PatchView, EngineError> {
        Ok(PatchView {
            patch: patched.patch.clone(),
            version: patched.version,
            definition: patched.definition,
            author: patched.author.clone(),
            reason: patched.reason.clone(),
            ops: self.payloads().show(&patched.ops).await?,
            diff: patched.diff.clone(),
            undoes: patched.undoes.clone(),
        })
    }
}

fn node_view(node: &NodeRun, output: Box<RawValue>, cached: bool) -> NodeView {
    NodeView {
        status: node.state,
        attempts: node.attempt,
        started_at: node.started_at,
        completed_at: node.completed_at,
        output,
        cached,
        error: node.error.clone(),
        waiting_for: waiting_for(node),
        waits: waits(node),
        children: Vec::new(),
    }
}

fn waits(node: &NodeRun) -> Option<Wait> {
    if node.state != NodeState::Waiting {
        return None;
    }
    Some(match node.wait.as_deref()? {
        Waiting::Retry { .. } | Waiting::For(WaitFor::Timer { .. }) => Wait::Timer,
        Waiting::For(WaitFor::Approval(_)) => Wait::Approval,
        Waiting::For(WaitFor::Signal { name, .. }) => Wait::Signal { name: name.clone() },
        Waiting::Children(_) | Waiting::For(WaitFor::Children(_)) | Waiting::Gathered(_) => Wait::Children,
    })
}

fn waiting_for(node: &NodeRun) -> Option<String> {
    if node.state != NodeState::Waiting {
        return None;
    }
    Some(match node.wait.as_deref()? {
        Waiting::Retry { until } => format!("its next attempt at {until}"),
        Waiting::For(WaitFor::Timer { until }) => format!("{until}"),
        Waiting::For(WaitFor::Approval(request)) => match &request.approver {
            Some(approver) => format!("approval {} by {approver}", request.approval),
            None => format!("approval {}", request.approval),
        },
        Waiting::For(WaitFor::Signal { name, .. }) => format!("signal `{name}`"),
        Waiting::Children(children) => {
            format!("{} of {} runs", children.count - children.ended, children.count)
        }
        Waiting::For(WaitFor::Children(_)) | Waiting::Gathered(_) => "runs of its own".to_owned(),
    })
}
