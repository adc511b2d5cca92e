//! What is handed through constructors.

use std::sync::Arc;

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

    /// Runs that are taken up from their histories.
    pub fn taken_up<'a>(&self, runs: impl IntoIterator<Item = &'a Run>) {
        if let Some(spans) = &self.spans {
            runs.into_iter().for_each(|run| spans.taken_up(run));
        }
    }

    /// The trace that a new run is to belong to: the one it was asked for in, or its own if spans are exported.
    pub fn link(&self, run: RunId, asked_in: Option<TraceLink>) -> Option<Arc<TraceLink>> {
        asked_in.or_else(|| self.spans.as_ref().map(|spans| spans.new_trace(run))).map(Arc::new)
    }

    /// What a call on behalf of a step says about the trace: the step is what it belongs to, or whoever asked for the
    /// run if nobody would hear of the step.
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
