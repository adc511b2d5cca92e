//! The invariants, computed from the histories rather than from the code under test.

use std::collections::HashMap;
use std::sync::Arc;

use switchyard_core::RunId;
use switchyard_core::ir::{AttemptLimit, EdgeOn, Join, OnError, Role};
use switchyard_core::run::*;

use crate::world::World;

/// Checks the touched runs, and that every ready node is queued.
pub(crate) fn touched(world: &World, runs: &[RunId]) {
    for run in runs.iter().filter_map(|id| world.in_flight.run(*id)) {
        counter_is_the_tokens_in_flight(run);
        history_rebuilds_the_state(world, run);
        parallelism_is_kept(run);
    }
    every_ready_node_is_queued(world);
    nothing_is_held_for_too_long(world);
}

/// Time advances only together with a pass of the duties, so no claim outlives its limit or the grace period of a
/// closing run.
fn nothing_is_held_for_too_long(world: &World) {
    for run in world.in_flight.runs() {
        let history = &world.histories[&run.id];
        let stop_by = history.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunClosing { stop_by, .. } => Some(*stop_by),
            _ => None,
        });
        let stop_by = stop_by.flatten().filter(|_| run.phase == Phase::Closing);
        for (ix, claim) in run.held() {
            let spec = run.ir.node(ix);
            let began = history.iter().find(|event| {
                matches!(&event.kind, EventKind::NodeStarted { node, claim: number, .. }
                    if *node == spec.id && *number == claim)
            });
            let began = began.expect("a claim is in the history").at;
            if let AttemptLimit::Own(limit) = spec.limit {
                assert!(began.plus(limit) > world.now, "`{}` is held beyond its limit: {run:#?}", spec.id);
            }
            assert!(stop_by.is_none_or(|at| at > world.now), "`{}` does not stop: {run:#?}", spec.id);
        }
    }
}

fn every_ready_node_is_queued(world: &World) {
    let mut ready: HashMap<Arc<str>, usize> = HashMap::new();
    for run in world.in_flight.runs().filter(|run| run.hands_out() && run.parallelism().is_none()) {
        for ix in run.ir.indices().filter(|ix| run.node(*ix).state == NodeState::Ready) {
            *ready.entry(run.ir.node(ix).queue.clone()).or_default() += 1;
        }
    }
    for depth in world.in_flight.depths() {
        let expected = ready.get(&depth.queue).copied().unwrap_or(0);
        let queued: usize = depth.bands.iter().map(|band_depth| band_depth.waiting).sum();
        assert!(queued >= expected, "{}: {queued} tokens queued for {expected} ready nodes", depth.queue);
    }
}

/// Invariant I3.
fn counter_is_the_tokens_in_flight(run: &Run) {
    let count = |wanted: fn(&NodeRun) -> bool| run.nodes.iter().filter(|node| wanted(node)).count() as u32;
    let asks = |node: &NodeRun| {
        matches!(node.wait.as_deref(), Some(Waiting::For(WaitFor::Approval(_))))
            && node.state == NodeState::Waiting
    };
    let approvals = count(asks);
    let live = count(|node| matches!(node.state, NodeState::Ready | NodeState::Running | NodeState::Waiting));
    assert_eq!(run.approvals, approvals);
    assert_eq!(run.counter, live - approvals, "counter of {run:#?}");
    let queued = run.phase == Phase::Queued;
    assert!(queued || run.counter + run.approvals > 0, "a run under way has nothing in flight: {run:#?}");
}

/// Invariant I6.
fn history_rebuilds_the_state(world: &World, run: &Run) {
    let rebuilt = world.replay(run.id);
    assert!(rebuilt == *run, "history of {} rebuilds\n{rebuilt:#?}\ninstead of\n{run:#?}", run.id);
    assert_eq!(rebuilt.standing_effects(), run.standing_effects());
    assert_eq!(rebuilt.operations, run.operations);
    let applied = world.applied.iter().filter(|(of, ..)| *of == run.id).count();
    assert_eq!(run.operations.len(), applied, "every operation that took effect is remembered");
}

fn parallelism_is_kept(run: &Run) {
    if let Some(cap) = run.parallelism() {
        let running = run.nodes.iter().filter(|node| node.state == NodeState::Running).count();
        assert!(running <= cap as usize, "{running} nodes run at once, {cap} may");
    }
}

/// Checks the history so far before this event is added to it.
pub(crate) fn before_event(world: &World, event: &Event) {
    let history = world.histories.get(&event.run).map_or(&[][..], Vec::as_slice);
    assert_eq!(event.seq, history.len() as u64 + 1, "gap in the history");
    let ended = matches!(history.last().map(|last| &last.kind), Some(EventKind::RunEnded { .. }));
    // I5.
    assert!(!ended || matches!(event.kind, EventKind::RunRetried { .. }), "{event:?} after the end");
    if let EventKind::NodeStarted { node, .. } = &event.kind {
        let before = Run::replay(history, &|hash| world.irs.get(&hash).cloned()).expect("whole so far");
        starts_only_after_its_needs(&before, node);
        assert!(!before.paused, "a paused run started {node}");
    }
}

/// Invariant I4.
fn starts_only_after_its_needs(run: &Run, node: &Arc<str>) {
    let target = run.ir.find(node).expect("it is in the graph");
    if run.ir.node(target).role != Role::Step {
        return;
    }
    let mut needs = Vec::new();
    for (ix, spec) in run.ir.steps() {
        for edge in spec.dependents.iter().filter(|edge| edge.to == target) {
            let state = run.node(ix).state;
            let handled = state == NodeState::Failed && spec.on_error != OnError::Fail;
            let decided = matches!(state, NodeState::Succeeded | NodeState::Skipped) || handled;
            let fires = match edge.on {
                EdgeOn::Success => {
                    state == NodeState::Succeeded || (handled && spec.on_error == OnError::Continue)
                }
                EdgeOn::Failure => handled && matches!(spec.on_error, OnError::Goto(_)),
            };
            needs.push((decided, fires));
        }
    }
    let all_decided = needs.iter().all(|(decided, _)| *decided);
    let any_fires = needs.iter().any(|(_, fires)| *fires);
    let may = all_decided || (run.ir.node(target).join == Join::Any && any_fires);
    assert!(may, "{node} started before its needs: {run:#?}");
}
