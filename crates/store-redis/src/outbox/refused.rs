//! Entries of the outbox that the archive does not take: those are found, and all others are archived.

use futures::future::join_all;
use switchyard_core::RunId;
use switchyard_store::{DeadLetter, StoreError};

use crate::outbox::entries::{Entry, Incarnations, Unreadable};
use crate::store::RedisStore;

/// What became of entries that were handed over one by one.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    pub(crate) archived: Vec<Entry>,
    /// These contradict what is archived, or what has to come before them is missing.
    pub(crate) refused: Vec<(Entry, Unreadable)>,
    pub(crate) broken: Incarnations,
}

impl RedisStore {
    /// Hands entries over one by one after all of them together were refused. An entry that stands on a refused one
    /// is refused as well, because its run's events would have a gap.
    pub(crate) async fn archive_apart(&self, fence: u64, entries: Vec<Entry>) -> Result<Apart, StoreError> {
        let acks: Vec<_> = entries.iter().map(|entry| self.archive.append(entry.events.clone())).collect();
        let answers = self.while_shipping(fence, join_all(acks)).await;
        let mut apart = Apart::default();
        for (entry, answer) in entries.into_iter().zip(answers) {
            let reason = match answer {
                Ok(()) => {
                    apart.archived.push(entry);
                    continue;
                }
                // Redis was set back, or another process was faster: the archive is right, and nothing is missing.
                Err(StoreError::Diverged { run, seq }) => {
                    tracing::warn!(%run, seq, "Redis contradicts the archive; the run is rebuilt");
                    None
                }
                Err(StoreError::Corrupt(reason)) => Some(reason),
                Err(other) => return Err(other),
            };
            let follows = entry.incarnations.keys().any(|run| apart.broken.contains_key(run));
            apart.broken.extend(&entry.incarnations);
            if let Some(reason) = reason.filter(|_| !follows) {
                let content = entry.content();
                apart.refused.push((entry, Unreadable { reason, content }));
            }
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
