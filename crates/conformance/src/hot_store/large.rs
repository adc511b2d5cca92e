//! Large graphs and long lists: the cost of a command depends on its changes, and every size can be settled.

use std::collections::HashMap;
use std::sync::Arc;

use switchyard_core::in_flight::{Command, Want};
use switchyard_core::ir::Ir;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    Accepted, ChildSpec, ChildrenPlan, EndStatus, EventKind, RunStatus, Settled, Settlement, Task,
    TaskOutcome, WaitFor, Waiting,
};
use switchyard_core::{CasRef, Hash, Payload, RunId};
use switchyard_store::Clock;

use crate::hot_store::fixture::{claim_of, failure};
use crate::hot_store::{Backend, Fixture};

/// More values than a Lua script can unpack.
const DEPENDENTS: usize = 10_000;
/// More children than are started at once.
const ITEMS: usize = 3_000;

pub async fn all(backend: &dyn Backend) {
    a_node_with_many_dependents_is_settled_once(&backend.open().await).await;
    a_large_run_is_paused_and_goes_on(&backend.open().await).await;
    a_large_run_is_cancelled(&backend.open().await).await;
    many_children_run_and_report(&backend.open().await).await;
    many_children_stay_below_their_cap(&backend.open().await).await;
    a_failed_child_stops_many_others(&backend.open().await).await;
    a_small_run_goes_on_beside_a_large_one(&backend.open().await).await;
}

/// `root`, then `width` nodes, then `join`.
fn fan(width: usize) -> Arc<Ir> {
    let mut sketch = Sketch::new().node("root", &[]);
    for i in 0..width {
        sketch = sketch.node(&format!("n{i}"), &["root"]);
    }
    let leaves: Vec<String> = (0..width).map(|i| format!("n{i}")).collect();
    let leaves: Vec<&str> = leaves.iter().map(String::as_str).collect();
    let mut ir = Arc::into_inner(sketch.node("join", &leaves).ir()).expect("it was just made");
    if let Some(join) = ir.nodes.last_mut() {
        join.reads.clear();
    }
    Arc::new(ir)
}

async fn start(fixture: &Fixture, ir: Arc<Ir>) -> RunId {
    let hash = ir.hash;
    fixture.hot.learn(ir).await.expect("a graph is learnt");
    fixture.start_as(Accepted::plain("large".into(), hash, Payload::null())).await
}

fn succeeded(task: &Task) -> Settlement {
    Settlement { claim: claim_of(task), outcome: TaskOutcome::Succeeded(output_of(task.run)) }
}

/// The output of a run; about one in 64 is in the CAS.
fn output_of(run: RunId) -> Payload {
    let hash = Hash::of(run.to_string().as_bytes());
    match hash.0[0] % 64 {
        0 => Payload::Cas(CasRef { hash, bytes: 5 << 20 }),
        n => Payload::from_value(&serde_json::json!({ "n": n })),
    }
}

/// Fires the timers that are due, as the timer duty does.
async fn fire(fixture: &Fixture) {
    while fixture
        .hot
        .fire_timers()
        .await
        .expect("timers fire")
        .1
        .is_some_and(|next| next <= fixture.clock.now())
    {}
}

/// Claims and settles tasks until none are left. Returns the number of tasks of each node.
async fn work_off(fixture: &Fixture) -> HashMap<Arc<str>, usize> {
    let (mut held, mut seen) = (Vec::new(), HashMap::new());
    loop {
        let settlements: Vec<Settlement> = held.iter().map(succeeded).collect();
        let (answers, tasks) = fixture.hot.step(settlements, &fixture.want(100)).await.expect("answered");
        assert!(answers.iter().all(|answer| *answer == Settled::Applied), "{answers:?}");
        fire(fixture).await;
        if tasks.is_empty() && held.is_empty() {
            return seen;
        }
        for task in &tasks {
            *seen.entry(task.node.clone()).or_default() += 1;
        }
        held = tasks;
    }
}

async fn count(fixture: &Fixture, run: RunId, counts: impl Fn(&EventKind) -> bool) -> usize {
    fixture.hot.archived().await.expect("the archive is there");
    let events = fixture.archive.events(run, 0, 200_000).await.expect("events are read");
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq), "its history has a gap");
    events.iter().filter(|event| counts(&event.kind)).count()
}

/// Asserts the end of a run without reading its history, which is long.
async fn has_ended(fixture: &Fixture, run: RunId, status: RunStatus) {
    assert!(fixture.hot.snapshot(run).await.expect("answered").is_none(), "it is still in flight");
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(record.status, status);
}

async fn a_node_with_many_dependents_is_settled_once(fixture: &Fixture) {
    let run = start(fixture, fan(DEPENDENTS)).await;
    let seen = work_off(fixture).await;
    assert_eq!((seen.len(), seen["join"]), (DEPENDENTS + 2, 1), "each node was handed out");
    assert!(seen.values().all(|times| *times == 1), "and once");
    let ended = count(fixture, run, |kind| matches!(kind, EventKind::NodeSucceeded { .. })).await;
    assert_eq!(ended, DEPENDENTS + 2);
    has_ended(fixture, run, RunStatus::Succeeded).await;
}

async fn a_large_run_is_paused_and_goes_on(fixture: &Fixture) {
    let run = start(fixture, fan(DEPENDENTS)).await;
    fixture.pass("root").await;
    let held = fixture.claim(1).await.remove(0);
    fixture.command(run, Command::Pause { by: "me".into() }).await.expect("paused");
    fixture.nothing_to_claim().await;
    fixture.succeed(&held).await;
    assert_eq!(fixture.state(run).await.status(), RunStatus::Paused);
    fixture.command(run, Command::Resume { by: "me".into() }).await.expect("resumed");
    let seen = work_off(fixture).await;
    assert_eq!(seen.len(), DEPENDENTS, "all but the root and the one that was held");
    has_ended(fixture, run, RunStatus::Succeeded).await;
}

async fn a_large_run_is_cancelled(fixture: &Fixture) {
    let run = start(fixture, fan(DEPENDENTS)).await;
    fixture.pass("root").await;
    let held = fixture.claim(1).await.remove(0);
    let cancel = Command::Cancel { by: "me".into(), reason: "enough".into(), compensate: true, now: false };
    fixture.command(run, cancel).await.expect("cancelled");
    fixture.nothing_to_claim().await;
    fixture.settle(&held, TaskOutcome::Cancelled).await;
    fixture.ended(run, RunStatus::Cancelled).await;
}

/// A run whose node waits for `count` children.
async fn spawn(
    fixture: &Fixture,
    count: usize,
    concurrency: u32,
    stop_on_failure: bool,
) -> (RunId, Vec<RunId>) {
    let mut parent = Sketch::chain(1);
    parent.nodes[0].id = "map".into();
    let definition = fixture.learn(&Sketch::chain(1)).await.hash;
    let run = fixture.start(&parent).await;
    let task = fixture.claim_node("map").await;
    let children: Vec<RunId> = (0..count).map(|_| fixture.fresh_run()).collect();
    let plan = ChildrenPlan {
        workflow: "child".into(),
        definition,
        children: children.iter().map(|run| ChildSpec::plain(*run, Payload::null())).collect(),
        concurrency,
        stop_on_failure,
        timeout_at: None,
    };
    fixture.settle(&task, TaskOutcome::Waiting(WaitFor::Children(Box::new(plan)))).await;
    (run, children)
}

async fn many_children_run_and_report(fixture: &Fixture) {
    let (run, children) = spawn(fixture, ITEMS, u32::MAX, true).await;
    fire(fixture).await;
    let mut held = fixture.claim(100).await;
    while held[0].children.is_none() {
        let settlements: Vec<Settlement> = held.iter().map(succeeded).collect();
        held = fixture.hot.step(settlements, &fixture.want(100)).await.expect("answered").1;
    }
    let ends: Vec<_> = held[0].children.iter().flatten().filter_map(|child| child.end.clone()).collect();
    let outputs: Vec<Payload> = ends.iter().map(|end| end.output.clone()).collect();
    assert_eq!(outputs, children.iter().map(|child| output_of(*child)).collect::<Vec<_>>(), "in their order");
    assert!(ends.iter().all(|end| end.status == EndStatus::Succeeded));
    work_off(fixture).await;
    fixture.succeed(&held[0]).await;
    let started = count(fixture, run, |kind| matches!(kind, EventKind::ChildStarted { .. })).await;
    let ended = count(fixture, run, |kind| matches!(kind, EventKind::ChildEnded { .. })).await;
    assert_eq!((started, ended), (ITEMS, ITEMS));
    fixture.nothing_to_claim().await;
}

async fn many_children_stay_below_their_cap(fixture: &Fixture) {
    let (run, _) = spawn(fixture, ITEMS / 3, 10, true).await;
    fire(fixture).await;
    let mut held = fixture.claim(100).await;
    while held[0].children.is_none() {
        assert!(held.len() <= 10, "{} at once", held.len());
        let settlements: Vec<Settlement> = held.iter().map(succeeded).collect();
        held = fixture.hot.step(settlements, &fixture.want(100)).await.expect("answered").1;
    }
    fixture.succeed(&held[0]).await;
    let ended = count(fixture, run, |kind| matches!(kind, EventKind::ChildEnded { .. })).await;
    assert_eq!(ended, ITEMS / 3);
}

async fn a_failed_child_stops_many_others(fixture: &Fixture) {
    let (run, children) = spawn(fixture, ITEMS, u32::MAX, true).await;
    fire(fixture).await;
    let held = fixture.claim(2).await;
    fixture.settle(&held[0], failure()).await;
    fire(fixture).await;
    fixture.settle(&held[1], TaskOutcome::Cancelled).await;
    let gather = fixture.claim_node("map").await;
    let ends = gather.children.clone().expect("its children's results");
    let of = |status| ends.iter().flat_map(|child| &child.end).filter(|end| end.status == status).count();
    assert_eq!((of(EndStatus::Failed), of(EndStatus::Cancelled)), (1, ITEMS - 1));
    fixture.settle(&gather, failure()).await;
    fixture.ended(children[ITEMS - 1], RunStatus::Cancelled).await;
    has_ended(fixture, run, RunStatus::Failed).await;
}

/// One run cannot delay another: between any two batches of a long list other runs are served.
async fn a_small_run_goes_on_beside_a_large_one(fixture: &Fixture) {
    let (large, _) = spawn(fixture, ITEMS, u32::MAX, true).await;
    let mut beside = Sketch::chain(2);
    beside.nodes.iter_mut().for_each(|node| node.queue = "beside".into());
    let small = fixture.start(&beside).await;
    let want = Want { queues: ["beside".into()].into(), ..fixture.want(1) };
    let mut settlements = Vec::new();
    while fixture.hot.snapshot(small).await.expect("answered").is_some() {
        let tasks = fixture.hot.step(settlements, &want).await.expect("answered").1;
        settlements = tasks.iter().map(succeeded).collect();
        fixture.hot.fire_timers().await.expect("timers fire");
    }
    let state = fixture.state(large).await;
    let Some(Waiting::Children(children)) = state.nodes[0].wait.as_deref() else { panic!("{state:?}") };
    assert!(
        children.started < ITEMS as u32,
        "the small run ended before the large one had started all of its own"
    );
}
