//! Progress of a run: on a terminal a bar and a line for every node that ends, plain lines otherwise.

pub(crate) mod lines;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use switchyard_api::{Event, RunView};
use switchyard_core::Timestamp;
use switchyard_core::run::NodeState;

use crate::escape;
use crate::output;
use crate::settings::Settings;
use lines::Mark;

/// Beyond this many nodes, successes get no line on a terminal: the bar counts them.
const LINES_OF_NODES_MAX: usize = 200;

#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    colors: bool,
    /// The current attempt of each node, and when it began.
    begun: HashMap<Arc<str>, (u64, Timestamp)>,
    running: Vec<Arc<str>>,
    done: HashSet<Arc<str>>,
    /// Nodes whose waiting for child runs was shown already.
    waited: HashSet<Arc<str>>,
    steps: HashSet<Arc<str>>,
}

impl Progress {
    pub(crate) fn begin(settings: &Settings, run: &RunView) -> Self {
        let mut progress = Self {
            bar: settings.draws().then(bar),
            colors: output::colors(),
            begun: HashMap::new(),
            running: Vec::new(),
            done: HashSet::new(),
            waited: HashSet::new(),
            steps: HashSet::new(),
        };
        progress.sync(run);
        progress
    }

    /// Takes over the state of a run, without printing the events that led to it.
    pub(crate) fn sync(&mut self, run: &RunView) {
        (self.steps, self.done, self.running) = Default::default();
        for (id, node) in &run.nodes.0 {
            // A ready node with a start time was handed back: it starts anew.
            if let Some(at) = node.started_at.filter(|_| node.status != NodeState::Ready) {
                self.begun.insert(id.clone(), (u64::from(node.attempts), at));
            }
            if is_step(id) {
                self.steps.insert(id.clone());
                if node.status.is_terminal() {
                    self.done.insert(id.clone());
                }
            }
        }
        self.draw();
    }

    /// Shows an event.
    pub(crate) fn note(&mut self, event: &Event) {
        self.count(event);
        let begun = event.node().and_then(|node| self.begun.get(node)).map(|(_, at)| *at);
        if let Some((mark, text)) = lines::describe(event, begun).filter(|_| !self.repeats(event)) {
            self.say(mark, &text);
        }
        self.draw();
    }

    /// Whether the event repeats that a node waits for child runs: a loop waits for one run after the other.
    fn repeats(&mut self, event: &Event) -> bool {
        match event.node().filter(|_| &*event.kind == "node_waiting") {
            Some(node) if !event.field("on")["children"].is_null() => !self.waited.insert(node.into()),
            _ => false,
        }
    }

    fn count(&mut self, event: &Event) {
        let Some(node) = event.node() else { return };
        match &*event.kind {
            "node_started" => {
                let attempt = event.number("attempt").unwrap_or(1);
                // An attempt that continues after a wait keeps its start time.
                if self.begun.get(node).is_none_or(|(known, _)| *known != attempt) {
                    self.begun.insert(node.into(), (attempt, event.at));
                }
                // The hidden last step is not shown as running.
                if node != "/output" {
                    self.running.push(node.into());
                }
            }
            "node_succeeded" | "node_failed" | "node_skipped" | "node_cancelled" => {
                self.running.retain(|running| **running != *node);
                if self.steps.contains(node) {
                    self.done.insert(node.into());
                }
            }
            "node_retrying" | "node_waiting" => self.running.retain(|running| **running != *node),
            "node_released" => {
                self.running.retain(|running| **running != *node);
                self.begun.remove(node);
            }
            _ => {}
        }
    }

    fn say(&self, mark: Mark, text: &str) {
        match &self.bar {
            None => output::tell(text),
            // The bar lists the running nodes.
            Some(_) if mark == Mark::Start => {}
            Some(_) if mark == Mark::Good && self.steps.len() > LINES_OF_NODES_MAX => {}
            Some(bar) => bar.suspend(|| output::tell_signed(mark.sign(self.colors), text)),
        }
    }

    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        bar.set_length(self.steps.len() as u64);
        bar.set_position(self.done.len() as u64);
        let shown: Vec<&str> = self.running.iter().take(3).map(|node| &**node).collect();
        let more = if self.running.len() > shown.len() { ", …" } else { "" };
        bar.set_message(format!("{}{more}", escape::one_line(&shown.join(", "))));
    }

    /// Prints a line that is not about an event.
    pub(crate) fn tell(&self, text: &str) {
        match &self.bar {
            None => output::tell(text),
            Some(bar) => bar.suspend(|| output::tell(text)),
        }
    }

    pub(crate) fn hint(&self, text: &str) {
        self.tell(&format!("hint: {text}"));
    }

    /// Hides the bar while a question is open.
    pub(crate) fn hide(&self) {
        if let Some(bar) = &self.bar {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
    }

    pub(crate) fn show(&self) {
        if let Some(bar) = &self.bar {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Whether the author of the workflow wrote the node: hidden nodes have a slash in their names.
fn is_step(node: &str) -> bool {
    !node.contains('/')
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("[{elapsed}] {bar:32} {pos}/{len} nodes  {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
