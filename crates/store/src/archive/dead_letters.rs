//! Dead letters: what could not be done, and waits for a person.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::run::{Event, EventKind};
use switchyard_core::{Hash, RunId, Timestamp, time};

use crate::{Mutation, Operations, StoreError};

/// How much of an entry of the outbox is kept.
const EXCERPT_BYTES_MAX: usize = 1024;

/// The code of a failure that leaves a dead letter: the node took its workers down, or its worker says so.
pub const POISONED: &str = "poisoned";

/// The dead letters of every run, and those that belong to none.
#[async_trait]
pub trait DeadLetters: Operations {
    /// Keeps a dead letter that follows from no event, instead of one that has this id. Those of nodes are kept by
    /// [`Journal::append`](crate::Journal::append), and go when their node starts over.
    async fn bury(&self, letter: DeadLetter) -> Result<(), StoreError>;

    /// Newest first, without their signals, which may be large.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError>;

    /// Dead letters by kind, node and reason: the largest groups first, at most `limit`.
    async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, StoreError>;

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>, StoreError>;

    /// [`Mutation::PurgeDeadLetters`] without an operation. How many were removed.
    async fn purge(&self, which: Purge) -> Result<usize, StoreError> {
        self.mutate(Mutation::PurgeDeadLetters(which), None).await?.removed()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// `dead_` and something that follows from what it is about: the same thing is not buried twice.
    pub id: Arc<str>,
    pub kind: DeadKind,
    pub run_id: Option<RunId>,
    pub node: Option<Arc<str>>,
    /// Of the event that buried it.
    pub seq: Option<u64>,
    /// A sentence for people.
    pub reason: Arc<str>,
    /// What a plain worker left, as it was; of one that was too large, its beginning
    /// ([`oversized`](crate::plain::oversized)). A list leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Arc<str>>,
    /// How an entry of the outbox begins.
    #[serde(default)]
    pub excerpt: Option<Arc<str>>,
    #[serde(with = "time::rfc3339")]
    pub at: Timestamp,
}

/// Dead letters that say the same about the same node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterGroup {
    pub kind: DeadKind,
    pub node: Option<Arc<str>>,
    pub reason: Arc<str>,
    /// How many there are.
    pub letters: u64,
    #[serde(with = "time::rfc3339")]
    pub first_at: Timestamp,
    #[serde(with = "time::rfc3339")]
    pub last_at: Timestamp,
    /// One of them.
    pub example: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadKind {
    /// A node that was given up after too many deliveries.
    Task,
    /// A signal of a plain worker that makes no sense.
    Signal,
    /// An entry of the outbox that the archive could not take. Its runs were rebuilt from the archive.
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
    /// What an event buries.
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

    /// A signal that makes no sense, and why. The same text is one letter, as old as the last time.
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

    /// An entry of the outbox that could not be archived. `content` is what it says, of which the beginning is kept.
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

/// The beginning of a text that may be of any size.
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
    /// This one, unless it was buried anew since it was seen with this moment.
    Seen(Arc<str>, Timestamp),
    /// Those from before this moment.
    Before(Timestamp),
    All,
}
