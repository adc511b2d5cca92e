//! The reasons why a run waits.

use std::collections::BTreeSet;

use switchyard_api::{RunView, RunWaits, WaitReason};
use switchyard_core::RunId;
use switchyard_core::run::{NodeRun, NodeState, Run, RunStatus, WaitFor, Waiting};
use switchyard_store::Worker;

use super::{Engine, EngineError, History};

/// The most reasons that are listed for a run.
const REASONS_MAX: usize = 100;

impl Engine {
    /// All reasons why a run waits at this moment.
    pub async fn waits(&self, run: RunId) -> Result<RunWaits, EngineError> {
        let state = self.state(run).await?;
        let waits = self.reasons(&state).await?;
        Ok(RunWaits { run_id: run, status: state.status(), waits })
    }

    /// The view of a run with every payload loaded, and its wait reasons.
    pub async fn view(&self, run: &Run) -> Result<RunView, EngineError> {
        let waiting = self.reasons(run).await?;
        Ok(RunView { waiting, ..self.history().view(run).await? })
    }

    async fn reasons(&self, run: &Run) -> Result<Vec<WaitReason>, EngineError> {
        let has_ready = run.ir.indices().any(|ix| run.node(ix).state == NodeState::Ready);
        if has_ready && !run.status().is_terminal() {
            return Ok(reasons(run, Some(&self.hot.workers().await?)));
        }
        Ok(reasons(run, None))
    }
}

impl History {
    /// The reasons why a run waits that its history shows. Without the hot store, live workers are unknown.
    pub async fn waits(&self, run: RunId) -> Result<RunWaits, EngineError> {
        let state = self.state(run, None).await?;
        Ok(RunWaits { run_id: run, status: state.status(), waits: reasons(&state, None) })
    }
}

/// The reasons why a run waits. Without `workers`, queued nodes are left out.
pub(super) fn reasons(run: &Run, workers: Option<&[Worker]>) -> Vec<WaitReason> {
    let mut reasons = Vec::new();
    match run.status() {
        status if status.is_terminal() => return reasons,
        RunStatus::Paused => reasons.push(WaitReason::Resume {}),
        RunStatus::Queued => reasons.push(not_started(run)),
        _ => reasons.extend(workers.map(|workers| in_queues(run, workers)).unwrap_or_default()),
    }
    let waiting = run.ir.indices().filter_map(|ix| waits_for(&run.ir.node(ix).id, run.node(ix)));
    reasons.extend(waiting);
    reasons.truncate(REASONS_MAX);
    reasons
}

fn not_started(run: &Run) -> WaitReason {
    let key = run.accepted.concurrency.as_ref().map(|concurrency| concurrency.key.clone());
    match run.starts_at() {
        Some(at) => WaitReason::Start { at },
        None => WaitReason::ConcurrencyKey { key: key.unwrap_or_default() },
    }
}

/// One reason for each queue that holds a node of the run; queues without a worker come first.
fn in_queues(run: &Run, workers: &[Worker]) -> Vec<WaitReason> {
    let mut seen = BTreeSet::new();
    let (mut unserved, mut served) = (Vec::new(), Vec::new());
    for ix in run.ir.indices().filter(|ix| run.node(*ix).state == NodeState::Ready) {
        let spec = run.ir.node(ix);
        if !seen.insert(&spec.queue) {
            continue;
        }
        let (node, queue) = (spec.id.clone(), spec.queue.clone());
        match workers.iter().any(|worker| worker.serves(&queue)) {
            true => served.push(WaitReason::Queue { node, queue }),
            false => unserved.push(WaitReason::Worker { node, queue }),
        }
    }
    unserved.append(&mut served);
    unserved
}

fn waits_for(id: &std::sync::Arc<str>, node: &NodeRun) -> Option<WaitReason> {
    if node.state != NodeState::Waiting {
        return None;
    }
    let node_id = id.clone();
    Some(match node.wait.as_deref()? {
        Waiting::Retry { until } => WaitReason::Retry { node: node_id, at: *until },
        Waiting::For(WaitFor::Timer { until }) => WaitReason::Timer { node: node_id, until: *until },
        Waiting::For(WaitFor::Approval(request)) => WaitReason::Approval {
            node: node_id,
            approval: request.approval.clone(),
            approver: request.approver.clone(),
        },
        Waiting::For(WaitFor::Signal { name, .. }) => {
            WaitReason::Signal { node: node_id, name: name.clone() }
        }
        Waiting::Children(children) => WaitReason::Children {
            node: node_id,
            open: children.count.saturating_sub(children.ended),
            count: children.count,
        },
        Waiting::For(WaitFor::Children(_)) | Waiting::Gathered(_) => return None,
    })
}
