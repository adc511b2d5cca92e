//! What an event says to a person, in one line.

use switchyard_core::run::{Decision, Event, EventKind, Outcome, ReleaseReason, SkipReason, WaitFor};
use switchyard_core::{NodeError, Timestamp};
use switchyard_lang::duration::HumanDuration;

use crate::output::took;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Start,
    Good,
    Bad,
    Note,
}

impl Mark {
    pub(super) fn sign(self, colors: bool) -> &'static str {
        match (self, colors) {
            (Self::Good, true) => "\u{1b}[32m✓\u{1b}[0m",
            (Self::Good, false) => "✓",
            (Self::Bad, true) => "\u{1b}[31m✗\u{1b}[0m",
            (Self::Bad, false) => "✗",
            (Self::Start | Self::Note, _) => "·",
        }
    }
}

/// `None` for what nobody wants to read as it happens. `begun`: when the current attempt at the node began.
pub(super) fn describe(event: &Event, begun: Option<Timestamp>) -> Option<(Mark, String)> {
    match event.kind.node() {
        // The hidden last step is news only when it fails.
        Some(node) if &**node == "/output" && !matches!(event.kind, EventKind::NodeFailed { .. }) => None,
        Some(node) => about_node(node, event, begun),
        None => about_run(&event.kind),
    }
}

fn about_node(node: &str, event: &Event, begun: Option<Timestamp>) -> Option<(Mark, String)> {
    let since = begun.map_or(String::new(), |begun| format!(" ({})", took(event.at.since(begun))));
    Some(match &event.kind {
        // A node that was woken goes on; it does not start.
        EventKind::NodeStarted { .. } if begun.is_some_and(|begun| begun != event.at) => return None,
        EventKind::NodeStarted { attempt: 1, .. } => (Mark::Start, format!("{node} started")),
        EventKind::NodeStarted { attempt, .. } => (Mark::Start, format!("{node} started, attempt {attempt}")),
        EventKind::NodeSucceeded { .. } => (Mark::Good, format!("{node} succeeded{since}")),
        EventKind::NodeFailed { error, .. } => (Mark::Bad, format!("{node} failed: {error}")),
        EventKind::NodeRetrying { attempt, error, at, .. } => {
            (Mark::Bad, retrying(node, *attempt, error, at.since(event.at)))
        }
        EventKind::NodeSkipped { reason: SkipReason::Condition, .. } => {
            (Mark::Note, format!("{node} skipped: its condition is false"))
        }
        EventKind::NodeSkipped { reason: SkipReason::NoNeedFired, .. } => {
            (Mark::Note, format!("{node} skipped: nothing led to it"))
        }
        EventKind::NodeWaiting { on, .. } => (Mark::Note, waiting(node, on)?),
        EventKind::NodeReleased { reason, .. } => (Mark::Note, released(node, *reason)),
        EventKind::NodeCancelled { .. } => (Mark::Note, format!("{node} cancelled")),
        EventKind::ApprovalDecided { decision, by, comment, .. } => {
            (Mark::Note, decided(node, *decision, by, comment))
        }
        _ => return None,
    })
}

fn retrying(node: &str, attempt: u32, error: &NodeError, after: std::time::Duration) -> String {
    format!("{node} failed: {error}, attempt {} in {}", attempt + 1, HumanDuration(after))
}

fn waiting(node: &str, on: &WaitFor) -> Option<String> {
    Some(match on {
        WaitFor::Timer { until } => format!("{node} sleeps until {until}"),
        WaitFor::Signal { name, .. } => format!("{node} waits for signal `{name}`"),
        WaitFor::Children(plan) => match plan.children.len() {
            1 => format!("{node} waits for a run of its own"),
            many => format!("{node} waits for {many} runs of its own"),
        },
        // Told with how to decide it.
        WaitFor::Approval(_) => return None,
    })
}

fn released(node: &str, reason: ReleaseReason) -> String {
    let why = match reason {
        ReleaseReason::HandedBack => "was handed back",
        ReleaseReason::LeaseExpired => "lost its worker",
        ReleaseReason::Restart => "was interrupted by a restart",
    };
    format!("{node} {why}, and is done again")
}

fn decided(node: &str, decision: Decision, by: &str, comment: &str) -> String {
    let verb = match decision {
        Decision::Approved => "approved",
        Decision::Rejected => "rejected",
    };
    let said = if comment.is_empty() { String::new() } else { format!(": {comment}") };
    format!("{node} {verb} by {by}{said}")
}

fn about_run(kind: &EventKind) -> Option<(Mark, String)> {
    let text = match kind {
        EventKind::RunAccepted(accepted) if accepted.queued => "queued behind its concurrency key".to_owned(),
        EventKind::RunPaused { by } => format!("paused by {by}"),
        EventKind::RunResumed { by } => format!("resumed by {by}"),
        // A failure was told at its node, and is told again with the end of the run.
        EventKind::RunClosing { outcome: Outcome::Cancelled, error, .. } => error.message.to_string(),
        EventKind::RunCompensating {} => "undoing what had succeeded".to_owned(),
        EventKind::RunRetried { by, reset } => format!("retried by {by}: {} nodes again", reset.len()),
        EventKind::RunPatched(patched) => {
            format!("graph at version {}, patched by {}", patched.version, patched.author)
        }
        EventKind::SignalReceived { name, .. } => format!("signal `{name}` came"),
        _ => return None,
    };
    Some((Mark::Note, text))
}
