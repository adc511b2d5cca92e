//! What is handed through constructors.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::run::{Event, Run, Task};
use switchyard_core::{RunId, SpanId, TraceLink};

use crate::trace::{Headers, Spans};
use crate::{Commit, Metrics, log};

/// Metrics, and spans if they are exported.
#[derive(Clone, Debug, Default)]
pub struct Observe {
    metrics: Arc<Metrics>,
    spans: Option<Arc<Spans>>,
}

impl Observe {
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// With spans, which are exported.
    pub fn with_spans(self, spans: Spans) -> Self {
        Self { spans: Some(Arc::new(spans)), ..self }
    }

    /// Events that are about to be handed to the archive, in the order of the journal. The answer is for the ack.
    ///
    /// They are read before they are durable: afterwards they are the archive's. Should it not take them, this
    /// process is at its end.
    pub fn journalled(&self, events: &[Event]) -> Commit {
        self.metrics.happened(events);
        if let Some(spans) = &self.spans {
            spans.happened(events);
        }
        log::happened(events);
        Commit::begin(self.metrics.clone(), events.len())
    }

    /// Events that are in the archive, told by the one process that put them there. `took` is how long that was. Their
    /// spans are told by [`Observe::report`].
    pub fn archived(&self, events: &[Event], took: Duration) {
        if events.is_empty() {
            return;
        }
        self.metrics.happened(events);
        self.metrics.archive_events.inc_by(events.len() as u64);
        self.metrics.archive_commit.observe(took.as_secs_f64());
        log::happened(events);
    }

    /// Runs whose histories before these events are wanted before the events can be reported: each with the number of
    /// the first of them.
    pub fn strangers(&self, events: &[Event]) -> Vec<(RunId, u64)> {
        self.spans.as_ref().map(|spans| spans.strangers(events)).unwrap_or_default()
    }

    /// What happened to a run before the events that are to be reported.
    pub fn catch_up(&self, run: RunId, history: &[Event]) {
        if let Some(spans) = &self.spans {
            spans.catch_up(run, history);
        }
    }

    /// Makes spans of events that are in the archive. Of several processes, one does.
    pub fn report(&self, events: &[Event]) {
        if let Some(spans) = &self.spans {
            spans.happened(events);
        }
    }

    /// Another process may have reported in between.
    pub fn forget_reported(&self) {
        if let Some(spans) = &self.spans {
            spans.forget();
        }
    }

    /// Runs that are taken up from their histories.
    pub fn taken_up<'a>(&self, runs: impl IntoIterator<Item = &'a Run>) {
        for run in runs {
            self.metrics.took_up(run);
            if let Some(spans) = &self.spans {
                spans.taken_up(run);
            }
        }
    }

    /// The trace that a new run is to belong to: the one it was asked for in, or its own if spans are exported.
    pub fn link(&self, run: RunId, asked_in: Option<TraceLink>) -> Option<Arc<TraceLink>> {
        asked_in.or_else(|| self.spans.as_ref().map(|spans| spans.new_trace(run))).map(Arc::new)
    }

    /// What a call on behalf of a step says about the trace: the step is its parent, or the caller of the
    /// run if the step is not exported.
    pub fn outgoing(&self, task: &Task) -> Option<Headers> {
        let link = task.trace.as_ref()?;
        let span = match &self.spans {
            Some(_) => SpanId::of_step(task.run, &task.node, task.claim),
            None => link.parent?,
        };
        Some(Headers::new(link, span))
    }

    /// Sends what waits to be exported.
    pub async fn shut_down(&self) {
        if let Some(spans) = &self.spans {
            spans.shut_down().await;
        }
    }
}
