//! Tests that records are read back as they were written, at every stage of random histories.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use switchyard_core::error::NodeError;
use switchyard_core::in_flight::*;
use switchyard_core::ir::AttemptLimit;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::*;
use switchyard_core::{ApprovalId, Hash, OperationId, Payload, RunId, Timestamp};

use super::{Record, Written};

fn survives(in_flight: InFlight) -> InFlight {
    let given = in_flight.give_back();
    let mut again = InFlight::part(Limits::default(), 1_000);
    for stored_run in given.stored_runs.into_values() {
        let held = stored_run.run.held();
        let entries: BTreeMap<_, _> = held.iter().map(|(ix, _)| (*ix, format!("17-{}", ix.0))).collect();
        let record =
            Record::write(Written { stored_run: &stored_run, incarnation: 7, entries: &entries }).unwrap();
        let leases = stored_run
            .leases
            .iter()
            .map(|(ix, lease)| (stored_run.run.ir.node(*ix).id.to_string(), lease.until));
        let leases = leases.collect();
        let stored = record.clone().read(stored_run.run.id, &leases, &stored_run.run.ir).unwrap();
        assert_eq!((&stored.stored_run, stored.incarnation, &stored.entries), (&stored_run, 7, &entries));
        let written = Written { stored_run: &stored.stored_run, incarnation: 7, entries: &entries };
        assert_eq!(Record::write(written).unwrap(), record);
        again.load(stored_run);
    }
    again
}

fn operation(number: u128) -> Operation {
    Operation { id: OperationId::drawn(number), command: Hash::of(b"asked") }
}

#[test]
fn a_run_with_everything_survives() {
    let mut sketch = Sketch::new()
        .node("a", &[])
        .with(|a| (a.max_attempts, a.compensated) = (3, true))
        .node("b", &[])
        .with(|b| b.limit = AttemptLimit::Default)
        .node("c", &["a"])
        .node("d", &["a"]);
    sketch.parallelism = Some(2);
    let ir = sketch.ir();
    let now = Timestamp::from_millis(1_700_000_000_000);
    let id = RunId::new(now, 1, 0);
    let mut out = Vec::new();
    let mut in_flight = InFlight::part(Limits::default(), 0);
    in_flight.learn(ir.clone());
    let accepted = Accepted {
        deadline: Some(now.plus(Duration::from_secs(900))),
        concurrency: Some(Concurrency { key: "k".into(), limit: 1 }),
        idempotency: Some(Idempotency { key: "i".into(), body: ir.hash }),
        ..Accepted::plain("w".into(), ir.hash, Payload::from_value(&serde_json::json!({"x": "ä \"q\""})))
    };
    in_flight.accept(NewRun { id, accepted }, now, &mut out).unwrap();
    let want = Want {
        worker: "w".into(),
        queues: ["work".into()].into(),
        max: 10,
        lease: Some(Duration::from_secs(30)),
    };
    let tasks = in_flight.claim(&want, now, &mut out);
    assert_eq!(tasks.len(), 2);
    let settle = |in_flight: &mut InFlight, task: &Task, outcome: TaskOutcome| {
        let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
        in_flight.settle(Settlement { claim, outcome }, now.plus(Duration::from_secs(1)), &mut Vec::new())
    };
    let mut in_flight = survives(in_flight);
    settle(&mut in_flight, &tasks[0], TaskOutcome::Failed(NodeError::retryable("x", "y")));
    let mut in_flight = survives(in_flight);
    let request = ApprovalRequest {
        approval: ApprovalId::new("appr_1"),
        approver: Some(Arc::from("me")),
        prompt: None,
        payload: Payload::null(),
        timeout_at: Some(now.plus(Duration::from_secs(60))),
        on_timeout: ApprovalTimeout::Fail,
    };
    settle(&mut in_flight, &tasks[1], TaskOutcome::Waiting(WaitFor::Approval(Box::new(request))));
    let signal = Command::Signal { name: "s".into(), payload: Payload::null() };
    in_flight.command(id, &operation(1), signal, now, &mut out).unwrap().unwrap();
    in_flight.command(id, &operation(2), Command::Pause { by: "me".into() }, now, &mut out).unwrap().unwrap();
    let mut in_flight = survives(in_flight);
    let cancel = Command::Cancel { by: "me".into(), reason: "".into(), compensate: false, now: false };
    in_flight.command(id, &operation(3), cancel, now, &mut out).unwrap().unwrap();
    survives(in_flight);
}
