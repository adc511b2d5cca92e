//! Entries of the outbox that the archive does not take: those are found, and all others are archived.

use std::collections::HashSet;

use futures::future::join_all;
use switchyard_core::RunId;
use switchyard_store::{DeadLetter, StoreError};

use crate::outbox::entries::{Entry, Incarnations, Unreadable};
use crate::store::RedisStore;

/// The result of archiving entries one by one.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    pub(crate) archived: Vec<Entry>,
    /// These contradict what is archived, or what has to come before them is missing.
    pub(crate) refused: Vec<(Entry, Unreadable)>,
    pub(crate) broken: Incarnations,
}

impl RedisStore {
    /// Hands entries over one by one after all of them together were refused. What follows a refused entry in one of
    /// its incarnations is not handed over: its number may well fit what is archived, its content does not.
    pub(crate) async fn archive_apart(&self, fence: u64, entries: Vec<Entry>) -> Result<Apart, StoreError> {
        let mut apart = Apart::default();
        let mut left = entries;
        while !left.is_empty() {
            let (first, later) = first_of_each_run(left);
            let acks: Vec<_> = first.iter().map(|entry| self.archive.append(entry.events.clone())).collect();
            let answers = self.while_shipping(fence, join_all(acks)).await;
            for (entry, answer) in first.into_iter().zip(answers) {
                apart.note(entry, answer)?;
            }
            left = apart.without_broken(later);
        }
        Ok(apart)
    }

    /// Makes a dead letter of each. The same entry is buried once, however often that is tried.
    pub(crate) async fn bury(&self, entries: &[(Entry, Unreadable)]) -> Result<(), StoreError> {
        for (entry, Unreadable { reason, content }) in entries {
            let run: Option<RunId> = entry.only_run();
            let letter = DeadLetter::of_outbox_entry(&entry.id, run, reason.as_str(), content, entry.at());
            let (id, dead_letter) = (&entry.id, &*letter.id);
            tracing::error!(entry = id, dead_letter, reason, "an entry of the outbox cannot be archived");
            self.archive.bury(letter.clone()).await?;
            self.observe.metrics().outbox_entry_buried();
        }
        Ok(())
    }
}

impl Apart {
    fn note(&mut self, entry: Entry, answer: Result<(), StoreError>) -> Result<(), StoreError> {
        match answer {
            Ok(()) => self.archived.push(entry),
            // Redis was set back, or another process was faster: the archive is right, and nothing is missing.
            Err(StoreError::Diverged { run, seq }) => {
                tracing::warn!(%run, seq, "Redis contradicts the archive; the run is rebuilt");
                self.broken.extend(entry.incarnations());
            }
            Err(StoreError::Corrupt(reason)) => {
                self.broken.extend(entry.incarnations());
                let content = entry.content();
                self.refused.push((entry, Unreadable { reason, content }));
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }

    /// Leaves out what follows something refused, and with it the incarnations that changed together with that.
    fn without_broken(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut good = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.is_of(&self.broken) {
                self.broken.extend(entry.incarnations());
            } else {
                good.push(entry);
            }
        }
        good
    }
}

/// Entries that no earlier one shares a run with, and the others.
fn first_of_each_run(entries: Vec<Entry>) -> (Vec<Entry>, Vec<Entry>) {
    let mut seen = HashSet::new();
    entries.into_iter().partition(|entry| {
        let before = seen.len();
        seen.extend(entry.incarnations.keys().copied());
        seen.len() == before + entry.incarnations.len()
    })
}
