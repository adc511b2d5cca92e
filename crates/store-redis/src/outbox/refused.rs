//! Finds the entries of the outbox that the archive refuses, and archives all others.

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
    /// Entries that the archive refused, which become dead letters.
    pub(crate) refused: Vec<(Entry, Unreadable)>,
    pub(crate) broken: Incarnations,
}

impl RedisStore {
    /// Archives entries one by one after the archive refused all of them together. Leaves out entries that follow a
    /// refused one of the same incarnation: their numbers may fit the archive, but they follow from other events.
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

    /// Stores a dead letter for each entry. Repeated calls for the same entry store one.
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
            // Redis went back to an earlier state, or another process was faster: the archive is right and complete.
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

    /// Leaves out entries of broken incarnations. All other incarnations of such an entry then count as broken, too.
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

/// Splits entries into those that share no run with an earlier entry, and the others.
fn first_of_each_run(entries: Vec<Entry>) -> (Vec<Entry>, Vec<Entry>) {
    let mut seen = HashSet::new();
    entries.into_iter().partition(|entry| {
        let before = seen.len();
        seen.extend(entry.incarnations.keys().copied());
        seen.len() == before + entry.incarnations.len()
    })
}
