//! Shows runs live, a line for each event.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use switchyard_api::Event;
use switchyard_core::{RunId, Timestamp};
use switchyard_runtime::Engine;
use switchyard_store::RunFilter;

use crate::errors::Failure;
use crate::output;
use crate::progress::lines;

/// Runs per poll: if more start between two polls, the rest is not shown.
const PAGE: usize = 50;

/// The longest part of an output that is shown.
const OUTPUT_CHARS_MAX: usize = 200;

pub(super) struct Live {
    since: Timestamp,
    /// The newest runs at the last poll.
    known: HashSet<RunId>,
}

impl Live {
    /// Shows runs that are accepted from this moment on.
    pub(super) fn new(since: Timestamp) -> Self {
        Self { since, known: HashSet::new() }
    }

    /// Starts showing the runs that are new since the last poll.
    pub(super) async fn show_new(&mut self, engine: &Engine) {
        let filter = RunFilter { limit: PAGE, ..RunFilter::default() };
        // The server reports a store that does not answer.
        let Ok(page) = engine.history().runs(&filter).await else { return };
        for run in page.items.iter().rev() {
            if run.accepted_at >= self.since && !self.known.contains(&run.run_id) {
                output::tell(&format!("{} of {}", run.run_id, run.workflow));
                tokio::spawn(show(engine.clone(), run.run_id));
            }
        }
        self.known = page.items.iter().map(|run| run.run_id).collect();
    }
}

async fn show(engine: Engine, run: RunId) {
    // The run is durable whether it is shown or not.
    if let Err(failure) = follow(engine, run).await {
        failure.tell();
    }
}

async fn follow(engine: Engine, run: RunId) -> Result<(), Failure> {
    let name = short(run);
    let mut begun: HashMap<String, Timestamp> = HashMap::new();
    let mut news = engine.follow(run, 0);
    loop {
        for event in news.next().await? {
            let event = Event::of(&event)?;
            if let (Some(node), "node_started") = (event.node(), &*event.kind) {
                begun.insert(node.to_owned(), event.at);
            }
            let since = event.node().and_then(|node| begun.get(node)).copied();
            if let Some(text) = describe(&event, since) {
                output::tell(&format!("  {name} {text}"));
            }
            if event.is_end() {
                return Ok(());
            }
        }
    }
}

/// The end of a run's id, which tells it from other runs.
fn short(run: RunId) -> String {
    let id = run.to_string();
    id[id.len().saturating_sub(6)..].to_owned()
}

fn describe(event: &Event, begun: Option<Timestamp>) -> Option<String> {
    if event.is_end() {
        return Some(ended(event));
    }
    if let Some(approval) = event.field("on")["approval"]["approval"].as_str() {
        let node = event.node().unwrap_or_default();
        return Some(format!("{node} waits for a decision: switchyard approvals approve {approval}"));
    }
    lines::describe(event, begun).map(|(_, text)| text)
}

fn ended(event: &Event) -> String {
    let status = event.text("status").unwrap_or("ended");
    match event.field("error") {
        Value::Null => {
            let output = event.field("output").to_string();
            let shown: String = output.chars().take(OUTPUT_CHARS_MAX).collect();
            format!("{status}: {shown}{}", if shown.len() < output.len() { "…" } else { "" })
        }
        error => format!("{status}: {}", error["message"].as_str().unwrap_or("it does not say why")),
    }
}
