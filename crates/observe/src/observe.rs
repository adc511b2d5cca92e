//! [`Observe`], the handle that constructors pass on.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::run::{Event, Run, Task};
use switchyard_core::{RunId, SpanId, TraceLink};

use crate::trace::{Headers, Spans};
use crate::{Commit, Metrics, log};

/// Receives metrics, logs and traces; spans only if they are exported.
#[derive(Clone, Debug, Default)]
pub struct Observe {
    metrics: Arc<Metrics>,
    spans: Option<Arc<Spans>>,
}

impl Observe {
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Adds the export of spans.
    pub fn with_spans(self, spans: Spans) -> Self {
        Self { spans: Some(Arc::new(spans)), ..self }
    }

    /// Records events that are about to be handed to the archive, in the order of the journal. The caller reports the
    /// acknowledgement to the returned [`Commit`].
    ///
    /// They are recorded before they are durable, because the archive takes ownership of them. If it cannot store them,
    /// this process ends.
    pub fn journalled(&self, events: &[Event]) -> Commit {
        self.metrics.happened(events);
        if let Some(spans) = &self.spans {
            spans.happened(events);
        }
        log::happened(events);
        Commit::begin(self.metrics.clone(), events.len())
    }

    /// Records events that this process has stored in the archive. `took` is how long that took. [`Observe::report`]
    /// makes their spans.
    pub fn archived(&self, events: &[Event], took: Duration) {
        if events.is_empty() {
            return;
        }
        self.metrics.happened(events);
        self.metrics.archive_events.inc_by(events.len() as u64);
        self.metrics.archive_commit.observe(took.as_secs_f64());
        log::happened(events);
    }

    /// Runs whose earlier history [`Observe::catch_up`] needs before these events can be reported, each with the number
    /// of its first event in `events`.
    pub fn strangers(&self, events: &[Event]) -> Vec<(RunId, u64)> {
        self.spans.as_ref().map(|spans| spans.strangers(events)).unwrap_or_default()
    }

    /// Replays the history of a run before the events that are to be reported.
    pub fn catch_up(&self, run: RunId, history: &[Event]) {
        if let Some(spans) = &self.spans {
            spans.catch_up(run, history);
        }
    }

    /// Makes spans of archived events. Only one of several processes calls it.
    pub fn report(&self, events: &[Event]) {
        if let Some(spans) = &self.spans {
            spans.happened(events);
        }
    }

    /// Drops all open spans, because another process may have reported in between.
    pub fn forget_reported(&self) {
        if let Some(spans) = &self.spans {
            spans.forget();
        }
    }

    /// Records runs that this process resumes from their histories.
    pub fn taken_up<'a>(&self, runs: impl IntoIterator<Item = &'a Run>) {
        for run in runs {
            self.metrics.took_up(run);
            if let Some(spans) = &self.spans {
                spans.taken_up(run);
            }
        }
    }

    /// The trace of a new run: the caller's, or a new one if spans are exported.
    pub fn link(&self, run: RunId, asked_in: Option<TraceLink>) -> Option<Arc<TraceLink>> {
        asked_in.or_else(|| self.spans.as_ref().map(|spans| spans.new_trace(run))).map(Arc::new)
    }

    /// The trace headers of a call that a step makes. The parent is the step, or the caller of the run if spans are
    /// not exported.
    pub fn outgoing(&self, task: &Task) -> Option<Headers> {
        let link = task.trace.as_ref()?;
        let span = match &self.spans {
            Some(_) => SpanId::of_step(task.run, &task.node, task.claim),
            None => link.parent?,
        };
        Some(Headers::new(link, span))
    }

    /// Sends the spans that are still queued.
    pub async fn shut_down(&self) {
        if let Some(spans) = &self.spans {
            spans.shut_down().await;
        }
    }
}
