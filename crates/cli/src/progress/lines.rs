//! Describes an event for a person, in one line.

use serde_json::Value;
use switchyard_api::Event;
use switchyard_base::HumanDuration;
use switchyard_core::{NodeError, Timestamp};

use crate::output::took;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
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

/// The line for an event; `None` if it is not shown as progress. `begun`: when the current attempt at the node began.
pub(crate) fn describe(event: &Event, begun: Option<Timestamp>) -> Option<(Mark, String)> {
    match event.node() {
        // The hidden last step is shown only when it fails.
        Some("/output") if &*event.kind != "node_failed" => None,
        Some(node) => about_node(node, event, begun),
        None => about_run(event).map(|text| (Mark::Note, text)),
    }
}

fn about_node(node: &str, event: &Event, begun: Option<Timestamp>) -> Option<(Mark, String)> {
    let since = begun.map_or(String::new(), |begun| format!(" ({})", took(event.at.since(begun))));
    let attempt = event.number("attempt").unwrap_or(1);
    Some(match &*event.kind {
        // A node that was woken continues its attempt, which began earlier.
        "node_started" if begun.is_some_and(|begun| begun != event.at) => return None,
        "node_started" if attempt == 1 => (Mark::Start, format!("{node} started")),
        "node_started" => (Mark::Start, format!("{node} started, attempt {attempt}")),
        "node_succeeded" if *event.field("cached") == true => {
            (Mark::Good, format!("{node} succeeded, from the cache"))
        }
        "node_succeeded" => (Mark::Good, format!("{node} succeeded{since}")),
        "node_failed" => (Mark::Bad, format!("{node} failed: {}", error(event))),
        "node_retrying" => (Mark::Bad, retrying(node, attempt, event)),
        "node_skipped" if event.text("reason") == Some("condition") => {
            (Mark::Note, format!("{node} skipped: its condition is false"))
        }
        "node_skipped" => (Mark::Note, format!("{node} skipped: nothing led to it")),
        "node_waiting" => (Mark::Note, waiting(node, event.field("on"))?),
        "node_released" => (Mark::Note, released(node, event.text("reason"))),
        "node_cancelled" => (Mark::Note, format!("{node} cancelled")),
        "node_checkpointed" => (Mark::Note, format!("{node} has kept a checkpoint")),
        "approval_decided" => (Mark::Note, decided(node, event)),
        _ => return None,
    })
}

fn error(event: &Event) -> String {
    let error = serde_json::from_value::<NodeError>(event.field("error").clone());
    error.map_or_else(|_| "it does not say why".to_owned(), |error| error.to_string())
}

fn retrying(node: &str, attempt: u64, event: &Event) -> String {
    let at = event.text("retry_at").and_then(|at| at.parse::<Timestamp>().ok()).unwrap_or(event.at);
    let after = HumanDuration(at.since(event.at));
    format!("{node} failed: {}, attempt {} in {after}", error(event), attempt + 1)
}

fn waiting(node: &str, on: &Value) -> Option<String> {
    if let Some(until) = on["timer"]["until"].as_str() {
        return Some(format!("{node} sleeps until {until}"));
    }
    if let Some(name) = on["signal"]["name"].as_str() {
        return Some(format!("{node} waits for signal `{name}`"));
    }
    // Callers report approvals, with the commands to decide them.
    Some(match on["children"]["children"].as_array()?.len() {
        1 => format!("{node} waits for a run of its own"),
        many => format!("{node} waits for {many} runs of its own"),
    })
}

fn released(node: &str, reason: Option<&str>) -> String {
    let why = match reason {
        Some("lease_expired") => "lost its worker",
        Some("restart") => "was interrupted by a restart",
        _ => "was handed back",
    };
    format!("{node} {why}, and is done again")
}

fn decided(node: &str, event: &Event) -> String {
    let (decision, by) = (event.text("decision").unwrap_or("decided"), event.text("by").unwrap_or("?"));
    let comment = event.text("comment").filter(|comment| !comment.is_empty());
    format!("{node} {decision} by {by}{}", comment.map_or(String::new(), |comment| format!(": {comment}")))
}

fn about_run(event: &Event) -> Option<String> {
    let by = event.text("by").unwrap_or("?");
    Some(match &*event.kind {
        "run_queued" => "its start has come; it lines up for its concurrency key".to_owned(),
        "run_paused" => format!("paused by {by}"),
        "run_resumed" => format!("resumed by {by}"),
        // A failure was shown at its node, and is shown again with the end of the run.
        "run_closing" if event.text("outcome") == Some("cancelled") => {
            event.field("error")["message"].as_str()?.to_owned()
        }
        "run_compensating" => "undoing what had succeeded".to_owned(),
        "run_retried" => {
            format!("retried by {by}: {} nodes again", event.field("reset").as_array().map_or(0, Vec::len))
        }
        "run_patched" => format!(
            "graph at version {}, patched by {}",
            event.number("version")?,
            event.text("author").unwrap_or("?")
        ),
        "signal_received" => format!("signal `{}` came", event.text("name")?),
        _ => return None,
    })
}
