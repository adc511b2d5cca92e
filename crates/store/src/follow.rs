//! Followers of runs: subscribers that are notified of new events.

use std::collections::HashMap;

use crate::Change;
use parking_lot::Mutex;
use switchyard_core::RunId;
use switchyard_core::run::{Event, EventKind};
use tokio::sync::watch;

/// Subscribers by run.
#[derive(Debug)]
pub struct Followers {
    /// `None` after [`Followers::close`].
    by_run: Mutex<Option<HashMap<RunId, watch::Sender<Change>>>>,
}

impl Default for Followers {
    fn default() -> Self {
        Self { by_run: Mutex::new(Some(HashMap::new())) }
    }
}

impl Followers {
    /// Subscribes to a run. Followers of one run share a channel.
    pub fn follow(&self, run: RunId) -> watch::Receiver<Change> {
        let mut by_run = self.by_run.lock();
        let Some(by_run) = by_run.as_mut() else { return watch::Sender::new(Change::default()).subscribe() };
        // Drop the channels that have no receivers left.
        if by_run.len() > 1_000 && by_run.len().is_power_of_two() {
            by_run.retain(|_, sender| sender.receiver_count() > 0);
        }
        by_run.entry(run).or_insert_with(|| watch::Sender::new(Change::default())).subscribe()
    }

    /// Runs that have followers.
    pub fn followed(&self) -> Vec<RunId> {
        let by_run = self.by_run.lock();
        let followed = by_run.iter().flatten().filter(|(_, sender)| sender.receiver_count() > 0);
        followed.map(|(run, _)| *run).collect()
    }

    pub fn is_followed(&self, run: RunId) -> bool {
        let by_run = self.by_run.lock();
        by_run.as_ref().and_then(|by_run| by_run.get(&run)).is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// Closes every channel: followers see the end of the channel instead of waiting for ever.
    pub fn close(&self) {
        *self.by_run.lock() = None;
    }

    /// Notifies the followers. Call it once the change is durable: later followers read the change in the archive,
    /// earlier ones are notified here.
    pub fn tell(&self, news: &[(RunId, Change)]) {
        let mut by_run = self.by_run.lock();
        let Some(by_run) = by_run.as_mut().filter(|by_run| !by_run.is_empty()) else { return };
        for (run, change) in news {
            if let Some(sender) = by_run.get(run) {
                // Two calls may be acknowledged at once, and their changes may arrive here in either order.
                sender.send_if_modified(|known| {
                    let newer = known.seq < change.seq;
                    if newer {
                        *known = *change;
                    }
                    newer
                });
                if sender.receiver_count() == 0 {
                    by_run.remove(run);
                }
            }
        }
    }
}

/// The newest change of each run among these events.
pub fn news(events: &[Event]) -> Vec<(RunId, Change)> {
    let mut newest: Vec<(RunId, Change)> = Vec::new();
    for event in events {
        let change = Change { seq: event.seq, ended: matches!(event.kind, EventKind::RunEnded { .. }) };
        match newest.last_mut() {
            Some((run, known)) if *run == event.run => *known = change,
            // A run that occurs again gets a second entry, which does no harm.
            _ => newest.push((event.run, change)),
        }
    }
    newest
}
