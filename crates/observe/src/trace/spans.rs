//! Builds spans from events: of a run from acceptance to end, of a step from claim to outcome, of a wait from its
//! beginning to its end. Any process may execute a step; the journal has its beginning and its end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use switchyard_core::run::{Accepted, EndStatus, Event, EventKind, Run};
use switchyard_core::{NodeError, RunId, SpanId, Timestamp, TraceId, TraceLink};

use super::export::Exporter;
use super::span::{Attribute, Span};

/// Builds and exports the spans of runs; keeps the open spans of a run until it ends.
#[derive(Debug)]
pub struct Spans {
    exporter: Exporter,
    /// The share of runs without a caller's trace that is sampled, from 0 to 1.
    sample: f64,
    open: Mutex<HashMap<RunId, OpenRun>>,
    /// Runs whose history was read and that are not traced.
    untraced: Mutex<HashSet<RunId>>,
}

#[derive(Debug)]
struct OpenRun {
    link: Arc<TraceLink>,
    workflow: Arc<str>,
    attempt: u32,
    /// When the attempt began.
    since: Timestamp,
    parent: Option<SpanId>,
    nodes: HashMap<Arc<str>, OpenStep>,
    /// Child runs that this run is about to start, with the span of the wait that each belongs to.
    children: HashMap<RunId, SpanId>,
}

#[derive(Clone, Debug)]
struct OpenStep {
    since: Timestamp,
    attempt: u32,
    claim: u32,
    worker: Arc<str>,
    /// The step is not being executed: it waits for a timer, a signal, a person, or child runs.
    waits: bool,
}

/// The end of a step or a run: time, outcome and error.
struct Ended<'a> {
    at: Timestamp,
    outcome: &'static str,
    error: Option<(&'a str, &'a str)>,
}

impl Spans {
    pub fn new(exporter: Exporter, sample: f64) -> Self {
        Self { exporter, sample, open: Mutex::default(), untraced: Mutex::default() }
    }

    pub async fn shut_down(&self) {
        self.exporter.shut_down().await;
    }

    pub(crate) fn new_trace(&self, run: RunId) -> TraceLink {
        let trace = TraceId::of_run(run);
        TraceLink { trace, parent: None, sampled: is_sampled(trace, self.sample), state: None }
    }

    pub(crate) fn happened(&self, events: &[Event]) {
        let mut open = self.open.lock();
        for event in events {
            match &event.kind {
                EventKind::RunAccepted(accepted) => begin(&mut open, event, accepted),
                _ => {
                    if matches!(event.kind, EventKind::RunEnded { .. }) {
                        self.untraced.lock().remove(&event.run);
                    }
                    let Some(run) = open.get_mut(&event.run) else { continue };
                    run.follow(event, &mut |span| self.exporter.hand_over(span));
                    if matches!(event.kind, EventKind::RunEnded { .. }) {
                        open.remove(&event.run);
                    }
                }
            }
        }
    }

    /// Runs that this process does not know, each with the number of its first event in `events`. The caller passes
    /// their earlier events to [`Spans::catch_up`].
    pub(crate) fn strangers(&self, events: &[Event]) -> Vec<(RunId, u64)> {
        let (open, untraced) = (self.open.lock(), self.untraced.lock());
        let mut seen = HashSet::new();
        let first = events.iter().filter(|event| seen.insert(event.run));
        first
            .filter(|event| !matches!(event.kind, EventKind::RunAccepted(_)))
            .filter(|event| !open.contains_key(&event.run) && !untraced.contains(&event.run))
            .map(|event| (event.run, event.seq))
            .collect()
    }

    /// Replays earlier events of a run that another process executed.
    pub(crate) fn catch_up(&self, run: RunId, history: &[Event]) {
        let mut open = self.open.lock();
        for event in history {
            match &event.kind {
                EventKind::RunAccepted(accepted) => begin(&mut open, event, accepted),
                _ => {
                    if let Some(run) = open.get_mut(&event.run) {
                        run.follow(event, &mut drop);
                    }
                }
            }
        }
        if !open.contains_key(&run) {
            self.untraced.lock().insert(run);
        }
    }

    /// Drops all open spans: another process may have reported since, which makes them stale.
    pub(crate) fn forget(&self) {
        self.open.lock().clear();
        self.untraced.lock().clear();
    }

    /// Restores the open spans of a resumed or retried run from its state.
    pub(crate) fn taken_up(&self, run: &Run) {
        let Some(link) = run.accepted.trace.clone().filter(|link| link.sampled) else { return };
        let open = OpenRun {
            parent: parent_run(&run.accepted).or(link.parent),
            link,
            workflow: run.accepted.workflow.clone(),
            attempt: run.attempt,
            since: run.accepted_at,
            nodes: HashMap::new(),
            children: HashMap::new(),
        };
        self.open.lock().entry(run.id).or_insert(open);
    }
}

/// Whether a trace is sampled. Depends on the trace id only, so that every process decides the same.
fn is_sampled(trace: TraceId, part: f64) -> bool {
    let [.., a, b, c, d] = trace.0;
    f64::from(u32::from_be_bytes([a, b, c, d])) < part * (f64::from(u32::MAX) + 1.0)
}

fn begin(open: &mut HashMap<RunId, OpenRun>, event: &Event, accepted: &Accepted) {
    let Some(link) = accepted.trace.clone().filter(|link| link.sampled) else { return };
    let waiting =
        accepted.parent.as_ref().and_then(|parent| open.get_mut(&parent.run)?.children.remove(&event.run));
    let run = OpenRun {
        parent: waiting.or_else(|| parent_run(accepted)).or(link.parent),
        link,
        workflow: accepted.workflow.clone(),
        attempt: 1,
        since: event.at,
        nodes: HashMap::new(),
        children: HashMap::new(),
    };
    open.insert(event.run, run);
}

/// The span of the parent run. Only the process that saw the child start knows the wait that started it.
fn parent_run(accepted: &Accepted) -> Option<SpanId> {
    accepted.parent.as_ref().map(|parent| SpanId::of_run(parent.run, 1))
}

impl OpenRun {
    fn follow(&mut self, event: &Event, out: &mut impl FnMut(Span)) {
        use EventKind as E;
        let ended = |outcome| Ended { at: event.at, outcome, error: None };
        let failed = |outcome, error: &NodeError| (outcome, error.code.clone(), error.message.clone());
        match &event.kind {
            E::NodeStarted { node, attempt, claim, worker } => {
                self.close(event.run, node, ended("woken"), out);
                let (attempt, claim, worker) = (*attempt, *claim, worker.clone());
                let step = OpenStep { since: event.at, attempt, claim, worker, waits: false };
                self.nodes.insert(node.clone(), step);
            }
            E::NodeWaiting { node, .. } => {
                let step = self.nodes.get(node).cloned();
                self.close(event.run, node, ended("waiting"), out);
                let wait = step.map(|step| OpenStep { since: event.at, waits: true, ..step });
                self.nodes.extend(wait.map(|wait| (node.clone(), wait)));
            }
            E::ChildStarted { node, run, .. } => {
                let wait = self.nodes.get(node).map(|step| SpanId::of_wait(event.run, node, step.claim));
                self.children.extend(wait.map(|wait| (*run, wait)));
            }
            E::NodeSucceeded { node, .. } => self.close(event.run, node, ended("succeeded"), out),
            E::NodeSkipped { node, .. } => self.close(event.run, node, ended("skipped"), out),
            E::NodeReleased { node, .. } => self.close(event.run, node, ended("released"), out),
            E::NodeCancelled { node } => self.close(event.run, node, ended("cancelled"), out),
            E::NodeWoken { node } => self.close(event.run, node, ended("woken"), out),
            E::NodeFailed { node, error, .. } => {
                let (outcome, code, message) = failed("failed", error);
                let ended = Ended { at: event.at, outcome, error: Some((&code, &message)) };
                self.close(event.run, node, ended, out);
            }
            E::NodeRetrying { node, error, .. } => {
                let (outcome, code, message) = failed("retrying", error);
                let ended = Ended { at: event.at, outcome, error: Some((&code, &message)) };
                self.close(event.run, node, ended, out);
            }
            E::RunRetried { .. } => {
                self.attempt += 1;
                self.since = event.at;
            }
            E::RunEnded { status, error, .. } => {
                let outcome = match status {
                    EndStatus::Succeeded => "succeeded",
                    EndStatus::Failed => "failed",
                    EndStatus::Cancelled => "cancelled",
                };
                let error = error.as_ref().map(|error| (&*error.code, &*error.message));
                out(self.span(event.run, Ended { at: event.at, outcome, error }));
            }
            _ => {}
        }
    }

    fn close(&mut self, run: RunId, node: &Arc<str>, ended: Ended<'_>, out: &mut impl FnMut(Span)) {
        let Some(step) = self.nodes.remove(node) else { return };
        let (id, what) = match step.waits {
            false => (SpanId::of_step(run, node, step.claim), "step"),
            true => (SpanId::of_wait(run, node, step.claim), "wait"),
        };
        let mut attributes = self.attributes(run, &ended);
        attributes.push(("switchyard.node", (&**node).into()));
        attributes.push(("switchyard.attempt", step.attempt.into()));
        attributes.push(("switchyard.worker", (&*step.worker).into()));
        out(Span {
            trace: self.link.trace,
            id,
            parent: Some(SpanId::of_run(run, self.attempt)),
            state: self.link.state.clone(),
            name: format!("{what} {node}"),
            start: step.since,
            end: ended.at,
            attributes,
            error: ended.error.map(|(_, message)| message.to_owned()),
        });
    }

    fn span(&self, run: RunId, ended: Ended<'_>) -> Span {
        let mut attributes = self.attributes(run, &ended);
        attributes.push(("switchyard.run_attempt", self.attempt.into()));
        Span {
            trace: self.link.trace,
            id: SpanId::of_run(run, self.attempt),
            parent: self.parent,
            state: self.link.state.clone(),
            name: format!("run {}", self.workflow),
            start: self.since,
            end: ended.at,
            attributes,
            error: ended.error.map(|(_, message)| message.to_owned()),
        }
    }

    fn attributes(&self, run: RunId, ended: &Ended<'_>) -> Vec<(&'static str, Attribute)> {
        let mut attributes = vec![
            ("switchyard.run", Attribute::Text(run.to_string())),
            ("switchyard.workflow", (&*self.workflow).into()),
            ("switchyard.outcome", ended.outcome.into()),
        ];
        attributes.extend(ended.error.map(|(code, _)| ("error.type", code.into())));
        attributes
    }
}
