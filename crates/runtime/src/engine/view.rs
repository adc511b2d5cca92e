//! A run as people and programs see it.

use switchyard_api::{NodeView, NodesInOrder, PatchView, RunView, Wait};
use switchyard_core::ir::Role;
use switchyard_core::run::{NodeRun, NodeState, Patched, Run, WaitFor, Waiting};

use super::{EngineError, History};

impl History {
    /// A run with every payload brought back.
    pub async fn view(&self, run: &Run) -> Result<RunView, EngineError> {
        let mut nodes = Vec::new();
        for ix in run.ir.indices() {
            let (node, spec) = (run.node(ix), run.ir.node(ix));
            // Hidden steps are shown once they have something to show.
            if spec.role == Role::Step || node.has_started() {
                nodes.push((spec.id.clone(), self.node_view(node).await?));
            }
        }
        Ok(RunView {
            run_id: run.id,
            status: run.status(),
            workflow: run.accepted.workflow.clone(),
            definition: run.ir.hash,
            version: run.version,
            attempt: run.attempt,
            last_seq: run.seq,
            accepted_at: run.accepted_at,
            ended_at: run.ended_at,
            parent: run.accepted.parent.as_ref().map(|parent| parent.run),
            forked_from: run.accepted.forked_from.as_ref().map(|origin| origin.run),
            input: self.payloads().load_text(&run.accepted.input).await?,
            output: self.payloads().load_text(&run.output).await?,
            error: run.error.clone(),
            nodes: NodesInOrder(nodes),
            patches: self.patches(run).await?,
        })
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
            ops: self.payloads().load(&patched.ops).await?,
            diff: patched.diff.clone(),
            undoes: patched.undoes.clone(),
        })
    }

    async fn node_view(&self, node: &NodeRun) -> Result<NodeView, EngineError> {
        Ok(NodeView {
            status: node.state,
            attempts: node.attempt,
            started_at: node.started_at,
            completed_at: node.completed_at,
            output: self.payloads().load_text(&node.output_or_null()).await?,
            error: node.error.clone(),
            waiting_for: waiting_for(node),
            waits: waits(node),
        })
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
            format!(
                "{} of {} runs",
                children.plan.children.len() as u32 - children.ended,
                children.plan.children.len()
            )
        }
        Waiting::For(WaitFor::Children(_)) | Waiting::Gathered(_) => "runs of its own".to_owned(),
    })
}
