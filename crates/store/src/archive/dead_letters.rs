//! Dead letters: work that failed for good and waits for a person.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::run::{Event, EventKind};
use switchyard_core::{Hash, RunId, Timestamp, time};

use crate::{Mutation, Operations, StoreError};

/// The longest excerpt of an outbox entry, in bytes.
const EXCERPT_BYTES_MAX: usize = 1024;

/// The error code that creates a dead letter: the node crashed its workers, or its worker reported this code.
pub const POISONED: &str = "poisoned";

/// The dead letters of every run, and those that belong to no run.
#[async_trait]
pub trait DeadLetters: Operations {
    /// Stores a dead letter that no event produced, replacing one with the same id.
    /// [`Journal::append`](crate::Journal::append) stores the dead letters of nodes, and removes them when their node
    /// starts over.
    async fn bury(&self, letter: DeadLetter) -> Result<(), StoreError>;

    /// Newest first, without their signals, which may be large.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError>;

    /// Dead letters by kind, node and reason: the largest groups first, at most `limit`.
    async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, StoreError>;

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>, StoreError>;

    /// [`Mutation::PurgeDeadLetters`] without an operation. Returns how many were removed.
    async fn purge(&self, which: Purge) -> Result<usize, StoreError> {
        self.mutate(Mutation::PurgeDeadLetters(which), None).await?.removed()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// `dead_` and a suffix derived from the subject, so that the same subject has one dead letter.
    pub id: Arc<str>,
    pub kind: DeadKind,
    pub run_id: Option<RunId>,
    pub node: Option<Arc<str>>,
    /// The seq of the event that created the dead letter.
    pub seq: Option<u64>,
    /// A sentence for people.
    pub reason: Arc<str>,
    /// The signal of a plain worker, unchanged; if it was too large, its beginning
    /// ([`oversized`](crate::plain::oversized)). Lists omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Arc<str>>,
    /// The beginning of an outbox entry.
    #[serde(default)]
    pub excerpt: Option<Arc<str>>,
    #[serde(with = "time::rfc3339")]
    pub at: Timestamp,
}

/// Dead letters with the same kind, node and reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterGroup {
    pub kind: DeadKind,
    pub node: Option<Arc<str>>,
    pub reason: Arc<str>,
    /// The number of dead letters in the group.
    pub letters: u64,
    #[serde(with = "time::rfc3339")]
    pub first_at: Timestamp,
    #[serde(with = "time::rfc3339")]
    pub last_at: Timestamp,
    /// The id of one dead letter of the group.
    pub example: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadKind {
    /// A node that failed after too many deliveries.
    Task,
    /// An invalid signal of a plain worker.
    Signal,
    /// An outbox entry that the archive could not store. Its runs were rebuilt from the archive.
    OutboxEntry,
}

impl DeadKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Signal => "signal",
            Self::OutboxEntry => "outbox_entry",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Task, Self::Signal, Self::OutboxEntry].into_iter().find(|kind| kind.as_str() == word)
    }
}

impl DeadLetter {
    /// The dead letter that an event creates, if it creates one.
    pub fn of(event: &Event) -> Option<Self> {
        let EventKind::NodeFailed { node, error, .. } = &event.kind else { return None };
        if &*error.code != POISONED {
            return None;
        }
        let run = event.run.to_string();
        let location = run.strip_prefix("run_").unwrap_or(&run);
        Some(Self {
            id: format!("dead_{location}_{}", event.seq).into(),
            kind: DeadKind::Task,
            run_id: Some(event.run),
            node: Some(node.clone()),
            seq: Some(event.seq),
            reason: error.message.clone(),
            signal: None,
            excerpt: None,
            at: event.at,
        })
    }

    /// The dead letter of an invalid signal. The same text is one dead letter, dated by its latest occurrence.
    pub fn of_signal(signal: &str, reason: impl Into<Arc<str>>, at: Timestamp) -> Self {
        let hash = Hash::of(signal.as_bytes()).hex();
        Self {
            id: format!("dead_{}", &hash[..26]).into(),
            kind: DeadKind::Signal,
            run_id: None,
            node: None,
            seq: None,
            reason: reason.into(),
            signal: Some(signal.into()),
            excerpt: None,
            at,
        }
    }

    /// The dead letter of an outbox entry that could not be archived. The letter keeps the beginning of `content`.
    pub fn of_outbox_entry(
        entry: &str,
        run: Option<RunId>,
        reason: impl Into<Arc<str>>,
        content: &str,
        at: Timestamp,
    ) -> Self {
        let run_text = run.map_or_else(String::new, |run| run.to_string());
        let hash = Hash::of(format!("{entry} {run_text} {content}").as_bytes()).hex();
        Self {
            id: format!("dead_{}", &hash[..26]).into(),
            kind: DeadKind::OutboxEntry,
            run_id: run,
            node: None,
            seq: None,
            reason: reason.into(),
            signal: None,
            excerpt: Some(excerpt(content).into()),
            at,
        }
    }
}

/// The beginning of a text of any size.
fn excerpt(text: &str) -> String {
    if text.len() <= EXCERPT_BYTES_MAX {
        return text.to_owned();
    }
    let begin = &text[..text.floor_char_boundary(EXCERPT_BYTES_MAX)];
    format!("{begin}… ({} bytes)", text.len())
}

/// Which dead letters to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    One(Arc<str>),
    /// The dead letter with this id, unless it was stored again since the caller saw it with this time.
    Seen(Arc<str>, Timestamp),
    /// Dead letters from before this moment.
    Before(Timestamp),
    All,
}
