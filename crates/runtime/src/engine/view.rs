//! A run as people and programs see it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use switchyard_core::error::RunError;
use switchyard_core::ir::Role;
use switchyard_core::run::{NodeRun, NodeState, Patched, Run, RunStatus, WaitFor, Waiting};
use switchyard_core::{Hash, NodeError, RunId, Timestamp, time};

use super::{EngineError, History};

#[derive(Debug, Serialize)]
pub struct RunView {
    pub run_id: RunId,
    pub status: RunStatus,
    pub workflow: Arc<str>,
    pub definition: Hash,
    /// Of the graph: one more than the patches it has taken.
    pub version: u32,
    pub attempt: u32,
    pub last_seq: u64,
    #[serde(serialize_with = "time::rfc3339::serialize")]
    pub accepted_at: Timestamp,
    #[serde(serialize_with = "time::rfc3339::option::serialize")]
    pub ended_at: Option<Timestamp>,
    pub parent: Option<RunId>,
    pub forked_from: Option<RunId>,
    pub input: Box<RawValue>,
    pub output: Box<RawValue>,
    pub error: Option<RunError>,
    pub nodes: NodesInOrder,
    pub patches: Vec<Patched>,
}

/// Nodes by id, in the order of the graph.
#[derive(Debug, Default)]
pub struct NodesInOrder(pub Vec<(Arc<str>, NodeView)>);

impl Serialize for NodesInOrder {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(id, node)| (id, node)))
    }
}

#[derive(Debug, Serialize)]
pub struct NodeView {
    pub status: NodeState,
    pub attempts: u32,
    #[serde(serialize_with = "time::rfc3339::option::serialize")]
    pub started_at: Option<Timestamp>,
    #[serde(serialize_with = "time::rfc3339::option::serialize")]
    pub completed_at: Option<Timestamp>,
    pub output: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<NodeError>>,
    /// What it waits for, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
}

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
            patches: run.patches.clone(),
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
        })
    }
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
