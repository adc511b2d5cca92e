//! Short constructors for valid events.

use std::sync::Arc;

use serde_json::json;
use switchyard_core::error::{NodeError, RunError};
use switchyard_core::run::*;
use switchyard_core::{
    ApprovalId, CasRef, Hash, Labels, OperationId, PatchId, Payload, RunId, Timestamp, TraceLink,
};
use switchyard_store::Journal;

/// The first moment of the tests.
pub const BEGIN: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The n-th run: larger `n`, later acceptance.
pub fn run_id(n: u32) -> RunId {
    RunId::new(Timestamp::from_millis(BEGIN.as_millis() + i64::from(n)), 7, 0)
}

/// Numbers the events of one run.
#[derive(Debug, Clone)]
pub struct History {
    pub run: RunId,
    pub seq: u64,
}

impl History {
    pub fn of(run: RunId) -> Self {
        Self { run, seq: 0 }
    }

    pub fn next(&mut self, kind: EventKind) -> Event {
        self.seq += 1;
        Event { run: self.run, seq: self.seq, at: at(self.seq), kind }
    }

    pub fn all(&mut self, kinds: impl IntoIterator<Item = EventKind>) -> Vec<Event> {
        kinds.into_iter().map(|kind| self.next(kind)).collect()
    }

    /// Makes the next events and hands them to the archive.
    pub async fn put(&mut self, archive: &dyn Journal, kinds: impl IntoIterator<Item = EventKind>) {
        archive.append(self.all(kinds)).await.expect("the archive takes a valid history");
    }
}

/// When the event with this seq happens.
pub fn at(seq: u64) -> Timestamp {
    Timestamp::from_millis(BEGIN.as_millis() + 1_000 * seq.cast_signed())
}

pub fn acceptance() -> Accepted {
    Accepted::plain("enrich".into(), Hash::of(b"enrich"), Payload::null())
}

pub fn accepted() -> EventKind {
    accepted_as(acceptance())
}

pub fn accepted_as(acceptance: Accepted) -> EventKind {
    EventKind::RunAccepted(Box::new(acceptance))
}

pub fn accepted_with_key(key: &str, body: Hash) -> EventKind {
    let idempotency = Some(Idempotency { key: key.into(), body });
    accepted_as(Accepted { idempotency, ..acceptance() })
}

pub fn paused() -> EventKind {
    EventKind::RunPaused { by: "ada".into(), operation: None }
}

pub fn resumed() -> EventKind {
    EventKind::RunResumed { by: "ada".into(), operation: None }
}

pub fn closing() -> EventKind {
    EventKind::RunClosing {
        outcome: Outcome::Failed,
        error: run_error(),
        stop_running: false,
        compensate: true,
        stop_by: None,
        operation: None,
    }
}

/// Further variants of `RunClosing`.
pub fn later_closings() -> Vec<EventKind> {
    vec![EventKind::RunClosing {
        outcome: Outcome::Cancelled,
        error: run_error(),
        stop_running: true,
        compensate: false,
        stop_by: Some(at(90)),
        operation: None,
    }]
}

pub fn ended(status: EndStatus) -> EventKind {
    let error = (status != EndStatus::Succeeded).then(run_error);
    EventKind::RunEnded { status, output: Payload::null(), error }
}

pub fn retried() -> EventKind {
    EventKind::RunRetried { by: "ada".into(), reset: vec!["fetch".into()], operation: None }
}

pub fn node_started(node: &str) -> EventKind {
    EventKind::NodeStarted { node: node.into(), attempt: 1, claim: 1, worker: "worker-1".into() }
}

pub fn node_succeeded(node: &str) -> EventKind {
    EventKind::NodeSucceeded {
        node: node.into(),
        output: Payload::from_value(&json!({"status": 200})),
        cached: false,
    }
}

pub fn node_failed(node: &str) -> EventKind {
    EventKind::NodeFailed { node: node.into(), attempt: 3, error: node_error() }
}

pub fn node_waiting(node: &str, approval: &str) -> EventKind {
    EventKind::NodeWaiting { node: node.into(), on: WaitFor::Approval(Box::new(approval_request(approval))) }
}

pub fn approval_request(approval: &str) -> ApprovalRequest {
    ApprovalRequest {
        approval: ApprovalId::new(approval),
        approver: Some("manager@example.com".into()),
        prompt: Some("Spend \"this\"?\n— €5".into()),
        payload: Payload::from_value(&json!({"risk": 0.9})),
        timeout_at: Some(at(100)),
        on_timeout: ApprovalTimeout::Reject,
    }
}

pub fn decided(node: &str, approval: &str, decision: Decision) -> EventKind {
    EventKind::ApprovalDecided {
        node: node.into(),
        approval: ApprovalId::new(approval),
        decision,
        by: "ada".into(),
        comment: "looks right".into(),
        operation: None,
    }
}

pub fn node_error() -> NodeError {
    NodeError::retryable("http_status", "the server answered 503")
}

pub fn run_error() -> RunError {
    RunError {
        node: Some("fetch".into()),
        attempt: Some(3),
        code: "http_status".into(),
        message: "the server answered 503".into(),
        not_compensated: vec!["charge".into()],
    }
}

/// Acceptances with fields that were added later.
pub fn later_acceptances() -> Vec<EventKind> {
    let trace = TraceLink {
        trace: "4bf92f3577b34da6a3ce929d0e0e4736".parse().expect("a trace id"),
        parent: Some("00f067aa0ba902b7".parse().expect("a span id")),
        sampled: true,
        state: Some("congo=t61rcWkgMzE".into()),
    };
    vec![
        accepted_as(Accepted { trace: Some(Arc::new(trace)), ..acceptance() }),
        accepted_as(Accepted { scheduled_at: Some(at(40)), ..acceptance() }),
        accepted_as(Accepted { queued: true, start_at: Some(at(500)), priority: Some(9), ..acceptance() }),
    ]
}

/// One of every kind of event, beginning with the acceptance, with every optional part filled in.
pub fn every_kind() -> Vec<EventKind> {
    std::iter::successors(Some(full_acceptance()), after).collect()
}

fn full_acceptance() -> EventKind {
    let seed = |node: &str, end| Seed { node: node.into(), end };
    accepted_as(Accepted {
        workflow: "enrich".into(),
        workflow_version: Some(3),
        definition: Hash::of(b"enrich"),
        input: Payload::from_value(&json!({"company": "Zürich \"&\" Co", "n": [1, 2.5, null]})),
        queued: true,
        idempotency: Some(Idempotency { key: "order-17".into(), body: Hash::of(b"body") }),
        concurrency: Some(Concurrency { key: "tenant-a".into(), limit: 4 }),
        start_at: None,
        priority: None,
        deadline: Some(at(1_000)),
        parallelism: Some(8),
        parent: Some(ParentLink { run: run_id(1), node: "each".into(), index: 2, depth: 1 }),
        forked_from: Some(ForkOrigin { run: run_id(2), node: "fetch".into() }),
        scheduled_at: None,
        trace: None,
        labels: Labels::new(),
        schedule: None,
        seeds: vec![
            seed("a", SeedEnd::Succeeded(Payload::null())),
            seed("b", SeedEnd::Failed(node_error())),
            seed("c", SeedEnd::Skipped),
        ],
    })
}

/// The next kind of event. A chain and not a list, so that a new kind does not compile until it is in it.
fn after(kind: &EventKind) -> Option<EventKind> {
    use EventKind as E;
    let node: Arc<str> = "fetch".into();
    let large = Payload::Cas(CasRef { hash: Hash::of(b"large"), bytes: 70_000 });
    Some(match kind {
        E::RunAccepted(_) => E::RunStarted {},
        E::RunStarted {} => paused(),
        E::RunPaused { .. } => resumed(),
        E::RunResumed { .. } => closing(),
        E::RunClosing { .. } => E::RunCompensating {},
        E::RunCompensating {} => {
            E::RunEnded { status: EndStatus::Failed, output: large, error: Some(run_error()) }
        }
        E::RunEnded { .. } => retried(),
        E::RunRetried { .. } => E::RunPatched(Box::new(patched())),
        E::RunPatched(_) => E::SignalReceived { name: "paid".into(), payload: large, operation: None },
        E::SignalReceived { .. } => node_started("fetch"),
        E::NodeStarted { .. } => node_succeeded("fetch"),
        E::NodeSucceeded { .. } => node_failed("fetch"),
        E::NodeFailed { .. } => E::NodeRetrying {
            node,
            attempt: 1,
            error: NodeError::permanent("panic", "the handler panicked"),
            at: at(50),
        },
        E::NodeRetrying { .. } => E::NodeSkipped { node, reason: SkipReason::NoNeedFired },
        E::NodeSkipped { .. } => node_waiting("approve", "appr_1"),
        E::NodeWaiting { .. } => E::NodeWoken { node },
        E::NodeWoken { .. } => E::NodeReleased { node, reason: ReleaseReason::LeaseExpired },
        E::NodeReleased { .. } => E::NodeCancelled { node },
        E::NodeCancelled { .. } => decided("approve", "appr_1", Decision::Approved),
        E::ApprovalDecided { .. } => E::ChildStarted { node, index: 4, run: run_id(9) },
        E::ChildStarted { .. } => E::ChildEnded {
            node,
            index: 4,
            run: None,
            status: EndStatus::Cancelled,
            output: Payload::null(),
            error: Some(run_error()),
        },
        E::ChildEnded { .. } => E::NodeCheckpointed { node, value: Payload::from_value(&json!({"page": 7})) },
        E::NodeCheckpointed { .. } => {
            let chunks = vec![Payload::from_value(&json!("Hel")), Payload::from_value(&json!("lo"))];
            E::NodeChunks { node, attempt: 2, chunks }
        }
        E::NodeChunks { .. } => E::RunQueued {},
        E::RunQueued {} => E::NodeLogged {
            node,
            attempt: 2,
            lines: Payload::Cas(CasRef { hash: Hash::of(b"lines"), bytes: 9_000 }),
            count: 40,
            bytes: 8_000,
            truncated: true,
        },
        E::NodeLogged { .. } => return None,
    })
}

fn patched() -> Patched {
    Patched {
        patch: PatchId::new("patch_1"),
        version: 2,
        definition: Hash::of(b"patched"),
        author: "planner".into(),
        reason: "one more look".into(),
        ops: Payload::from_value(&json!([{"op": "add_node"}])),
        diff: vec!["+ node `look`".into()],
        undoes: Some(PatchId::new("patch_0")),
        operation: None,
    }
}

/// An operation with this id, and a command hash made from `asked`.
pub fn operation(id: &str, asked: &str) -> Operation {
    let id = OperationId::new(id).expect("an operation id");
    Operation { id, command: Hash::of(asked.as_bytes()) }
}

/// A signal that was sent as an operation.
pub fn signalled(by: Operation) -> EventKind {
    let payload = Payload::from_value(&json!(5));
    EventKind::SignalReceived { name: "paid".into(), payload, operation: Some(by) }
}

/// Every kind of event that a command begins with, each with its operation.
pub fn every_operation() -> Vec<EventKind> {
    let mut kinds = [
        paused(),
        resumed(),
        closing(),
        retried(),
        EventKind::RunPatched(Box::new(patched())),
        signalled(operation("op", "")),
        decided("approve", "appr_1", Decision::Approved),
    ];
    for (n, kind) in kinds.iter_mut().enumerate() {
        let by = Some(operation(&format!("order {n}"), "asked"));
        match kind {
            EventKind::RunPaused { operation, .. }
            | EventKind::RunResumed { operation, .. }
            | EventKind::RunClosing { operation, .. }
            | EventKind::RunRetried { operation, .. }
            | EventKind::SignalReceived { operation, .. }
            | EventKind::ApprovalDecided { operation, .. } => *operation = by,
            EventKind::RunPatched(patched) => patched.operation = by,
            _ => unreachable!("no command begins with it"),
        }
    }
    kinds.into()
}

/// Every other wait of a node, apart from the approval that [`every_kind`] has.
pub fn every_wait() -> Vec<EventKind> {
    let plan = ChildrenPlan {
        timeout_at: None,
        workflow: "enrich/each".into(),
        definition: Hash::of(b"each"),
        children: vec![ChildSpec::plain(run_id(9), Payload::null())],
        concurrency: 5,
        stop_on_failure: true,
    };
    let waits = [
        WaitFor::Timer { until: at(60) },
        WaitFor::Signal {
            name: "paid".into(),
            timeout_at: Some(at(70)),
            on_timeout: SignalTimeout::Continue,
        },
        WaitFor::Children(Box::new(plan)),
    ];
    waits.into_iter().map(|on| EventKind::NodeWaiting { node: "wait".into(), on }).collect()
}

pub fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

/// A run and a plan of children that have labels.
pub fn labelled() -> Vec<EventKind> {
    let labels = labels(&[("env", "prod"), ("team", "search")]);
    let accepted = Accepted { labels: labels.clone(), schedule: Some("nightly".into()), ..acceptance() };
    let child = ChildSpec { run: run_id(9), input: Payload::null(), labels };
    let plan = ChildrenPlan {
        timeout_at: None,
        workflow: "enrich/each".into(),
        definition: Hash::of(b"each"),
        children: vec![child],
        concurrency: 5,
        stop_on_failure: true,
    };
    let on = WaitFor::Children(Box::new(plan));
    vec![accepted_as(accepted), EventKind::NodeWaiting { node: "wait".into(), on }]
}

/// The end of a child that names it.
pub fn named_child_end() -> EventKind {
    EventKind::ChildEnded {
        node: "each".into(),
        index: 4,
        run: Some(run_id(9)),
        status: EndStatus::Succeeded,
        output: Payload::null(),
        error: None,
    }
}
