//! Checks the invariants from the archive alone.

use std::collections::HashMap;

use switchyard_core::RunId;
use switchyard_core::ir::{Join, NodeIx, Role};
use switchyard_core::run::{Event, EventKind, NodeState, Run, RunStatus};
use switchyard_runtime::History;
use switchyard_store::{RunFilter, RunRecord};

use crate::answers::Found;
use crate::graphs;
use crate::load::Asked;
use crate::report::Report;

/// Executions that the external service counted, by idempotency key.
pub type Executions = HashMap<String, u32>;

/// The violated invariants: which one, and where.
#[derive(Debug, Default)]
pub struct Violations(pub Vec<String>);

impl Violations {
    pub(crate) fn unless(&mut self, holds: bool, broken: impl FnOnce() -> String) {
        if !holds {
            self.0.push(broken());
        }
    }
}

pub(crate) async fn everything(
    history: &History,
    asked: &Asked,
    executions: &Executions,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut violations = Violations(asked.wrong.clone());
    let mut found = Found::new(asked);
    let mut repeated = 0;
    for record in &records(history).await? {
        count(record, report);
        let run = check_run(history, record.run_id, executions, &mut violations).await?;
        repeated += calls_beyond_the_attempts(&run, executions);
        let patches = asked.patches.iter().filter(|(of, _)| *of == run.id);
        check_patches(&run, patches.map(|(_, node)| node), &mut violations);
        found.look_through(&run, &history.events(run.id, 0, None).await?);
    }
    found.check(&mut violations);
    found.count(report);
    report.asked_again = asked.repeated;
    report.unanswered = asked.unanswered;
    report.executions = executions.values().map(|count| *count as usize).sum();
    report.repeated = repeated;
    report.violations = violations.0;
    Ok(())
}

async fn records(history: &History) -> anyhow::Result<Vec<RunRecord>> {
    let mut filter = RunFilter { include_children: true, limit: 1_000, ..RunFilter::default() };
    let mut records = Vec::new();
    loop {
        let page = history.runs(&filter).await?;
        records.extend(page.items);
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => return Ok(records),
        }
    }
}

fn count(record: &RunRecord, report: &mut Report) {
    match record.parent {
        Some(_) => report.children += 1,
        None => report.runs += 1,
    }
    match record.status {
        RunStatus::Succeeded => report.succeeded += 1,
        RunStatus::Failed => report.failed += 1,
        RunStatus::Cancelled => report.cancelled += 1,
        _ => {}
    }
}

/// Number of calls beyond the attempts of each node: the price of a fault, not a violation.
fn calls_beyond_the_attempts(run: &Run, executions: &Executions) -> usize {
    let beyond = |ix: NodeIx| {
        let ran = executions.get(&format!("{}/{}", run.id, run.ir.node(ix).id)).copied().unwrap_or(0);
        // Attempts that the service refused are intended.
        ran.saturating_sub(run.node(ix).attempt.max(1)) as usize
    };
    run.ir.indices().map(beyond).sum()
}

/// Checks I1 to I6 and I12 for one run that should have ended.
pub async fn check_run(
    history: &History,
    id: RunId,
    executions: &Executions,
    violations: &mut Violations,
) -> anyhow::Result<Run> {
    let events = history.events(id, 0, None).await?;
    violations
        .unless(events.iter().zip(1..).all(|(event, seq)| event.seq == seq), || format!("I6 {id} has gaps"));
    // Fails unless the state before each event allows the event.
    let run = history.state(id, None).await?;
    ends_once(&run, &events, violations);
    for ix in run.ir.indices() {
        node_ends_once(&run, ix, &events, violations);
        nothing_skipped(&run, ix, executions, violations);
        budget_was_kept(&run, ix, violations);
    }
    for (i, event) in events.iter().enumerate() {
        if let EventKind::NodeStarted { node, .. } = &event.kind {
            starts_after_its_needs(&run, &events[..i], node, violations);
        }
    }
    Ok(run)
}

/// Checks I1, I3 and I5. Only a retry reopens a run.
fn ends_once(run: &Run, events: &[Event], violations: &mut Violations) {
    let id = run.id;
    let ended = events.last().is_some_and(|event| matches!(event.kind, EventKind::RunEnded { .. }));
    violations.unless(ended, || format!("I1 {id} has not ended: it is {}", run.status()));
    for pair in events.windows(2) {
        let ended = matches!(pair[0].kind, EventKind::RunEnded { .. });
        let retried = matches!(pair[1].kind, EventKind::RunRetried { .. });
        violations.unless(!ended || retried, || format!("I5 {id} changed after its end at {}", pair[0].seq));
    }
    violations.unless(!ended || (run.counter, run.approvals) == (0, 0), || {
        format!("I3 {id} ended with {} tokens and {} approvals open", run.counter, run.approvals)
    });
}

/// Checks I2. A node that a retry of its run resets may end once more.
fn node_ends_once(run: &Run, ix: NodeIx, events: &[Event], violations: &mut Violations) {
    let node = &run.ir.node(ix).id;
    let mut ends = 0;
    for event in events {
        match &event.kind {
            EventKind::RunRetried { reset, .. } if reset.contains(node) => ends = 0,
            kind if kind.node() == Some(node) && is_end(kind) => {
                ends += 1;
                let at = event.seq;
                violations.unless(ends == 1, || format!("I2 {}/{node} ended {ends} times, at {at}", run.id));
            }
            _ => {}
        }
    }
}

/// Checks I12: work may be repeated, never skipped.
fn nothing_skipped(run: &Run, ix: NodeIx, executions: &Executions, violations: &mut Violations) {
    let spec = run.ir.node(ix);
    let has_effect = matches!(&*spec.queue, "http" | "command");
    if !has_effect || run.node(ix).state != NodeState::Succeeded {
        return;
    }
    let ran = executions.get(&format!("{}/{}", run.id, spec.id)).copied().unwrap_or(0);
    violations.unless(ran > 0, || format!("I12 {}/{} succeeded without being executed", run.id, spec.id));
}

/// Checks that an expression that would take all memory fails only its node, and kills no process.
fn budget_was_kept(run: &Run, ix: NodeIx, violations: &mut Violations) {
    let (id, node) = (&run.ir.node(ix).id, run.node(ix));
    if !id.starts_with(graphs::GREEDY) {
        return;
    }
    violations.unless(node.state != NodeState::Succeeded, || format!("{}/{id} exceeded no budget", run.id));
    let code = node.error.as_ref().map(|error| &*error.code);
    violations.unless(node.state != NodeState::Failed || code == Some("expression_budget"), || {
        format!("{}/{id} failed with {code:?} instead of its budget", run.id)
    });
}

/// Checks I8: a patch that was acknowledged is in the graph, once and whole.
fn check_patches<'p>(run: &Run, patches: impl Iterator<Item = &'p String>, violations: &mut Violations) {
    for node in patches {
        let found = run.ir.indices().filter(|ix| *run.ir.node(*ix).id == **node).count();
        violations.unless(found == 1, || {
            format!("I8 {} has {found} nodes {node} after the patch that adds it", run.id)
        });
    }
}

fn is_end(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::NodeSucceeded { .. }
            | EventKind::NodeFailed { .. }
            | EventKind::NodeSkipped { .. }
            | EventKind::NodeCancelled { .. }
    )
}

/// Checks I4 from the earlier events, not from the state.
fn starts_after_its_needs(run: &Run, before: &[Event], node: &str, violations: &mut Violations) {
    let Some(target) = run.ir.find(node) else { return };
    let spec = run.ir.node(target);
    if spec.role != Role::Step || spec.join != Join::All {
        return;
    }
    let needs = run.ir.steps().filter(|(_, need)| need.dependents.iter().any(|edge| edge.to == target));
    for (_, need) in needs {
        let ended = before.iter().any(|event| event.kind.node() == Some(&need.id) && is_end(&event.kind));
        violations.unless(ended, || format!("I4 {}/{node} started before {} had ended", run.id, need.id));
    }
}
