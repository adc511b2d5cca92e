//! A run as it moves: a bar and a line for every node that ends on a terminal, plain lines otherwise.

mod lines;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use switchyard_core::Timestamp;
use switchyard_core::ir::Role;
use switchyard_core::run::{Event, EventKind, NodeState, Run, WaitFor};

use crate::output;
use crate::settings::Settings;
use lines::Mark;

/// Beyond this many nodes, a terminal is told about failures only: the bar says the rest.
const LINES_OF_NODES_MAX: usize = 200;

#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    colors: bool,
    /// The attempt that a node is at, and when that began.
    begun: HashMap<Arc<str>, (u32, Timestamp)>,
    running: Vec<Arc<str>>,
    done: HashSet<Arc<str>>,
    /// Nodes that are known to wait for runs of their own.
    waited: HashSet<Arc<str>>,
    steps: HashSet<Arc<str>>,
}

impl Progress {
    pub(crate) fn begin(settings: &Settings, run: &Run) -> Self {
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

    /// Takes the state of a run as it is, saying nothing about how it came there.
    pub(crate) fn sync(&mut self, run: &Run) {
        (self.steps, self.done, self.running) = Default::default();
        for ix in run.ir.indices() {
            let (node, spec) = (run.node(ix), run.ir.node(ix));
            // What is ready again without having waited was handed back: it starts anew.
            let goes_on = node.state != NodeState::Ready || node.wait.is_some();
            if let Some(at) = node.started_at.filter(|_| goes_on) {
                self.begun.insert(spec.id.clone(), (node.attempt, at));
            }
            if spec.role == Role::Step {
                self.steps.insert(spec.id.clone());
                if node.state.is_terminal() {
                    self.done.insert(spec.id.clone());
                }
            }
        }
        self.draw();
    }

    /// Shows what happened.
    pub(crate) fn note(&mut self, event: &Event) {
        self.count(event);
        let begun = event.kind.node().and_then(|node| self.begun.get(node)).map(|(_, at)| *at);
        if let Some((mark, text)) = lines::describe(event, begun).filter(|_| !self.repeats(event)) {
            self.say(mark, &text);
        }
        self.draw();
    }

    /// A loop waits for one run after the other: said once is enough.
    fn repeats(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::NodeWaiting { node, on: WaitFor::Children(_) } => !self.waited.insert(node.clone()),
            _ => false,
        }
    }

    fn count(&mut self, event: &Event) {
        let Some(node) = event.kind.node() else { return };
        match &event.kind {
            EventKind::NodeStarted { attempt, .. } => {
                // An attempt that goes on after a wait has begun where it began.
                if self.begun.get(node).is_none_or(|(known, _)| known != attempt) {
                    self.begun.insert(node.clone(), (*attempt, event.at));
                }
                // The hidden last step has no line of its own either.
                if &**node != "/output" {
                    self.running.push(node.clone());
                }
            }
            EventKind::NodeSucceeded { .. }
            | EventKind::NodeFailed { .. }
            | EventKind::NodeSkipped { .. }
            | EventKind::NodeCancelled { .. } => {
                self.running.retain(|running| running != node);
                if self.steps.contains(node) {
                    self.done.insert(node.clone());
                }
            }
            EventKind::NodeRetrying { .. } | EventKind::NodeWaiting { .. } => {
                self.running.retain(|running| running != node);
            }
            EventKind::NodeReleased { .. } => {
                self.running.retain(|running| running != node);
                self.begun.remove(node);
            }
            _ => {}
        }
    }

    fn say(&self, mark: Mark, text: &str) {
        match &self.bar {
            None => output::tell(text),
            // What has started stands beside the bar.
            Some(_) if mark == Mark::Start => {}
            Some(_) if mark == Mark::Good && self.steps.len() > LINES_OF_NODES_MAX => {}
            Some(bar) => bar.suspend(|| output::tell(&format!("{} {text}", mark.sign(self.colors)))),
        }
    }

    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        bar.set_length(self.steps.len() as u64);
        bar.set_position(self.done.len() as u64);
        let shown: Vec<&str> = self.running.iter().take(3).map(|node| &**node).collect();
        let more = if self.running.len() > shown.len() { ", …" } else { "" };
        bar.set_message(format!("{}{more}", shown.join(", ")));
    }

    /// Something that is not an event.
    pub(crate) fn tell(&self, text: &str) {
        match &self.bar {
            None => output::tell(text),
            Some(bar) => bar.suspend(|| output::tell(text)),
        }
    }

    pub(crate) fn hint(&self, text: &str) {
        self.tell(&format!("hint: {text}"));
    }

    /// Leaves the terminal to a question.
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

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("[{elapsed}] {bar:32} {pos}/{len} nodes  {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
