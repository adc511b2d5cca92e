//! Tells parents about ends of their children that they have missed.
//!
//! A child's end and the event that tells its parent are one entry of the outbox. If Redis goes back to an earlier
//! state, they can be separated: the parent learns of an end that the archive refuses, the child is rebuilt and ends
//! again, and the parent, which already has an end, is not told. Once the parent is rebuilt too, it would wait for
//! ever.

use std::collections::HashSet;

use switchyard_core::RunId;
use switchyard_core::run::{AwaitedChild, ChildEnd, EventKind, Wanted};
use switchyard_store::{HotStore, StoreError, Unfinished};

use super::AT_ONCE;
use crate::slow_path::ReadSet;
use crate::store::RedisStore;

impl RedisStore {
    /// Tells parents that wait for children, although none is in flight, which of them have ended. A parent that still
    /// has children in flight is checked when those have ended.
    pub(crate) async fn tell_missed_ends(&self, unfinished: &[Unfinished]) -> Result<(), StoreError> {
        let waiting = self.waiting_for_children(unfinished).await?;
        if waiting.is_empty() {
            return Ok(());
        }
        let parents = self.archive.unfinished_with_ended_children().await?;
        for parent in parents.into_iter().filter(|parent| waiting.contains(parent)) {
            // A failure for one parent must not keep other runs from being recovered.
            if let Err(error) = self.tell_missed_ends_to(parent).await {
                tracing::error!(run = %parent, %error, "a run could not be told which of its children have ended");
            }
        }
        Ok(())
    }

    async fn waiting_for_children(&self, runs: &[Unfinished]) -> Result<HashSet<RunId>, StoreError> {
        let mut waiting = HashSet::new();
        for runs in runs.chunks(AT_ONCE) {
            let mut ask = redis::pipe();
            for unfinished in runs {
                ask.hexists(self.keys.run(unfinished.run), "plans");
            }
            let answers: Vec<bool> = self.client.query_all(&ask).await?;
            let found = runs.iter().zip(answers).filter(|(_, waits)| *waits);
            waiting.extend(found.map(|(unfinished, _)| unfinished.run));
        }
        Ok(waiting)
    }

    async fn tell_missed_ends_to(&self, parent: RunId) -> Result<(), StoreError> {
        let Some(run) = self.snapshot(parent).await? else { return Ok(()) };
        for child in run.awaited_children() {
            let Some(end) = self.archived_end(child.run).await? else { continue };
            tracing::warn!(%parent, child = %child.run, "a run had missed the end of a run that it waits for");
            self.tell_end(&child, &end).await?;
        }
        Ok(())
    }

    async fn tell_end(&self, child: &AwaitedChild, end: &ChildEnd) -> Result<(), StoreError> {
        let link = &child.link;
        let mut read_set = ReadSet::run(link.run);
        read_set.look_for(link.run, link.node.clone(), Wanted::End(link.index));
        read_set.look_for(link.run, link.node.clone(), Wanted::SpecsFrom(link.index));
        self.decide(read_set, |in_flight, now, out| in_flight.child_ended(child, end.clone(), now, out)).await
    }

    async fn archived_end(&self, run: RunId) -> Result<Option<ChildEnd>, StoreError> {
        let record = self.archive.run(run).await?.filter(|record| record.status.is_terminal());
        let Some(record) = record else { return Ok(None) };
        let last = self.archive.events(run, record.last_seq - 1, 1).await?;
        Ok(last.into_iter().find_map(|event| match event.kind {
            EventKind::RunEnded { status, output, error } => {
                Some(ChildEnd { run: Some(run), status, output, error })
            }
            _ => None,
        }))
    }
}
