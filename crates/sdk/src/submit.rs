//! Options of a submission.

use std::num::NonZeroU32;
use std::time::Duration;

use switchyard_core::run::Concurrency;
use switchyard_core::{Labels, Timestamp};
use switchyard_runtime::{Start, Submission};

/// Options of a submission, besides the workflow and the input. The defaults come from the workflow.
#[derive(Clone, Debug, Default)]
pub struct SubmitOptions {
    idempotency_key: Option<String>,
    concurrency: Option<Concurrency>,
    start: Option<Start>,
    priority: Option<u8>,
    deadline: Option<Duration>,
    parallelism: Option<NonZeroU32>,
    labels: Labels,
}

impl SubmitOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an idempotency key: submissions with the same key, workflow and input are the same run. A submission with
    /// the same key and another workflow or input is refused.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Sets a concurrency key: at most `limit` runs with this key run at once; the others are queued.
    pub fn concurrency(mut self, key: &str, limit: NonZeroU32) -> Self {
        self.concurrency = Some(Concurrency { key: key.into(), limit: limit.get() });
        self
    }

    /// Sets the start: no node starts before this time.
    pub fn start_at(mut self, at: Timestamp) -> Self {
        self.start = Some(Start::At(at));
        self
    }

    /// Delays the start: the first nodes start this long after the run was accepted.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.start = Some(Start::After(delay));
        self
    }

    /// Sets the priority of nodes that have none of their own, 1 (last) to 10 (first).
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets a deadline: the run fails if it has not ended this long after its start.
    pub fn deadline(mut self, after: Duration) -> Self {
        self.deadline = Some(after);
        self
    }

    /// Adds a label, by which filters find the run; a run has at most 16 labels.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Limits how many nodes of the run are queued or executed at once.
    pub fn parallelism(mut self, nodes: NonZeroU32) -> Self {
        self.parallelism = Some(nodes);
        self
    }

    pub(crate) fn apply_remote(
        self,
        mut submission: switchyard_client::Submission,
    ) -> switchyard_client::Submission {
        if let Some(key) = &self.idempotency_key {
            submission = submission.idempotency_key(key);
        }
        let limit = |given: &Concurrency| NonZeroU32::new(given.limit);
        if let Some((given, limit)) = self.concurrency.as_ref().and_then(|given| Some((given, limit(given)?)))
        {
            submission = submission.concurrency(&given.key, limit);
        }
        submission = match self.start {
            Some(Start::At(at)) => submission.start_at(at),
            Some(Start::After(delay)) => submission.delay(delay),
            None => submission,
        };
        if let Some(priority) = self.priority {
            submission = submission.priority(priority);
        }
        if let Some(after) = self.deadline {
            submission = submission.deadline(after);
        }
        for (key, value) in &self.labels {
            submission = submission.label(key, value);
        }
        if let Some(nodes) = self.parallelism {
            submission = submission.parallelism(nodes);
        }
        submission
    }

    pub(crate) fn apply(self, submission: Submission) -> Submission {
        Submission {
            idempotency_key: self.idempotency_key,
            concurrency: self.concurrency,
            start: self.start,
            priority: self.priority,
            deadline: self.deadline,
            parallelism: self.parallelism.map(NonZeroU32::get),
            labels: self.labels,
            ..submission
        }
    }
}
