//! Ships the outbox to the archive: in order, in batches, one shipper at a time.
//!
//! An entry has the events of one change, which are archived together. When the archive has an entry, the shipper
//! removes it from the outbox, notifies followers, and removes runs that have ended.

pub(crate) mod entries;
mod refused;
mod shipper;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use switchyard_core::RunId;
use switchyard_core::run::{Event, EventKind};
use switchyard_observe::Once;
use switchyard_redis::{Connection, FencedLock};
use switchyard_store::{StoreError, Unarchived, news};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::entries::Incarnations;
use self::entries::{Entry, RawEntries, Sorted};
use self::refused::Apart;
pub(crate) use self::shipper::Shipper;
use crate::client::Client;
use crate::store::RedisStore;
use crate::{binding, scripts};

/// How long the shipper's lock lasts without renewal, which is how long events wait if the shipper was killed.
const LOCK: Duration = Duration::from_secs(3);
/// How often a shipper renews its lock while it waits for the archive.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// How often the archive is compared with the identity and position that Redis has stored.
const COMPARE_EVERY: Duration = Duration::from_secs(1);
/// The entries of one batch. One entry has the events of up to 200 steps.
const BATCH: usize = 200;
/// How long the shipper waits for entries at most, and how long a process pauses while another one ships.
const IDLE: Duration = Duration::from_secs(1);
/// How long the shipper batches events that no caller waits for.
const GATHER: Duration = Duration::from_millis(2);
/// How long to wait for another shipper before giving up.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The result of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shipped {
    Events(usize),
    /// Another process has the shipper's lock.
    NotOurTurn,
}

/// The next entries of the outbox.
struct Next {
    fence: u64,
    /// The outbox has more entries after these.
    more: bool,
    changes: Vec<Entry>,
    forgotten: Incarnations,
}

impl RedisStore {
    /// One pass: ships the whole outbox.
    pub async fn ship(&self) -> Result<Shipped, StoreError> {
        let _turn = self.shipper.pass.lock().await;
        let shipped = self.ship_to_its_archive().await;
        if let Err(error) = &shipped {
            *self.shipper.compared.lock() = None;
            self.note_failure(error).await;
            // Another process may reach the archive.
            self.leave_shipping().await;
        }
        shipped
    }

    /// Ships the outbox after making sure that the archive is the right one: after an outage it may be another archive,
    /// or an earlier state of the same.
    async fn ship_to_its_archive(&self) -> Result<Shipped, StoreError> {
        let is_fresh = self.shipper.compared.lock().is_some_and(|at| at.elapsed() < COMPARE_EVERY);
        if !is_fresh {
            self.compare_archive().await?;
            *self.shipper.compared.lock() = Some(Instant::now());
        }
        self.ship_batches().await
    }

    async fn ship_batches(&self) -> Result<Shipped, StoreError> {
        let mut shipped = 0;
        let mut batch = BATCH;
        loop {
            let Some(next) = self.next_entries(batch).await? else {
                return Ok(Shipped::NotOurTurn);
            };
            let Next { fence, more, changes, forgotten } = next;
            if changes.is_empty() && more {
                // One change has more entries than the batch.
                batch *= 4;
                continue;
            }
            let last = changes.last().map_or_else(String::new, |entry| entry.id.clone());
            let Sorted { good, unreadable, broken } = entries::sort_out(changes, forgotten);
            let begun = Instant::now();
            let Apart { archived, refused, broken: contradicted } = self.archive_entries(fence, good).await?;
            let took = begun.elapsed();
            self.bury(&unreadable).await?;
            self.bury(&refused).await?;
            let lost: Incarnations = broken.into_iter().chain(contradicted).collect();
            if !lost.is_empty() {
                self.forget(&lost).await?;
            }
            let events: Vec<Event> = archived.iter().flat_map(|entry| entry.events.iter().cloned()).collect();
            // Followers in this process need not wait until Redis publishes the change.
            self.waiters.tell(&news(&events));
            let done = !more;
            if !self.shipped(fence, &last, &archived, done).await? {
                return Ok(Shipped::NotOurTurn);
            }
            shipped += events.len();
            // One process removes each entry from the outbox, and that process reports it.
            self.observe.archived(&events, took);
            self.report(fence, &events).await;
            if done {
                return Ok(Shipped::Events(shipped));
            }
        }
    }

    /// Archives all entries together, or one by one if the archive refuses one of them.
    async fn archive_entries(&self, fence: u64, entries: Vec<Entry>) -> Result<Apart, StoreError> {
        let events: Vec<Event> = entries.iter().flat_map(|entry| entry.events.iter().cloned()).collect();
        if events.is_empty() {
            return Ok(Apart { archived: entries, ..Apart::default() });
        }
        let answer = self.while_shipping(fence, self.archive.append(events)).await;
        self.note_archive(&answer);
        match answer {
            Ok(()) => Ok(Apart { archived: entries, ..Apart::default() }),
            Err(StoreError::Diverged { .. } | StoreError::Corrupt(_)) => {
                self.archive_apart(fence, entries).await
            }
            Err(error) => Err(error),
        }
    }

    /// Renews the lock while the archive works, which may take long: another shipper would not be faster.
    pub(crate) async fn while_shipping<T>(&self, fence: u64, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                answer = &mut work => return answer,
                () = tokio::time::sleep(RENEW_EVERY) => {}
            }
            // If this fails, `ship_done` notices that the lock is lost.
            let _ = self.ship_lock().renew(fence, LOCK).await;
        }
    }

    /// The number and age of changes that the archive does not have.
    pub(crate) async fn behind(&self) -> Result<Unarchived, StoreError> {
        let outbox = self.keys.outbox();
        let mut ask = redis::pipe();
        ask.cmd("XLEN").arg(&outbox);
        ask.cmd("XRANGE").arg(&outbox).arg("-").arg("+").arg("COUNT").arg(1);
        ask.cmd("TIME");
        ask.cmd("HGET").arg(self.keys.archive()).arg("error");
        let answers: (usize, RawEntries, (u64, u64), Option<String>) = self.client.query_all(&ask).await?;
        let (changes, oldest, now, error) = answers;
        let oldest = entries::waited(&oldest, now);
        let stuck = (oldest >= self.shipper.stuck_after)
            .then(|| error.unwrap_or_else(|| "the shipper is too slow, or no process ships".to_owned()));
        Ok(Unarchived { changes, oldest, stuck: stuck.map(Into::into) })
    }

    /// Stores the reason why shipping failed, for `doctor` and other processes. The next success removes it.
    async fn note_failure(&self, error: &StoreError) {
        if matches!(error, StoreError::Mismatched(_)) {
            return;
        }
        let mut note = redis::cmd("HSET");
        note.arg(self.keys.archive()).arg("error").arg(error.to_string());
        note.arg("error_at").arg(self.here().as_millis());
        // If Redis does not answer, every other call reports that.
        let _ = self.client.query::<u64>(&note).await;
    }

    /// Records in metrics whether the archive answers.
    pub(crate) fn note_archive(&self, answer: &Result<(), StoreError>) {
        self.observe.metrics().archive_is_up(!matches!(answer, Err(error) if error.is_outage()));
    }

    /// Reports spans of the shipped events. Reads the earlier events of a run that this shipper has not seen before
    /// from the archive: another process accepted the run, or shipped until now.
    async fn report(&self, fence: u64, events: &[Event]) {
        if self.shipper.reported_under.swap(fence, Ordering::Relaxed) != fence {
            self.observe.forget_reported();
        }
        for (run, first) in self.observe.strangers(events) {
            let before = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
            match self.archive.events(run, 0, before).await {
                Ok(history) => self.observe.catch_up(run, &history),
                Err(error) => tracing::debug!(%run, %error, "some spans of a run are missing"),
            }
        }
        self.observe.report(events);
    }

    fn ship_lock(&self) -> FencedLock<'_, Client> {
        FencedLock::new(&self.client, self.keys.ship_lock())
    }

    /// Releases the lock, if this process has it. If that fails, the lock expires.
    async fn leave_shipping(&self) {
        let fence = self.shipper.fence.swap(0, Ordering::Relaxed);
        if fence > 0 {
            let _ = self.ship_lock().release(fence).await;
        }
    }

    async fn next_entries(&self, batch: usize) -> Result<Option<Next>, StoreError> {
        let keys = [self.keys.ship_lock(), self.keys.outbox(), self.keys.forgotten(), self.keys.archive()];
        let mut args = vec![self.name.clone(), LOCK.as_millis().to_string(), batch.to_string()];
        args.extend([self.mark.id.to_string(), self.mark.location.to_string()]);
        let answer: Vec<redis::Value> = self.unbound.run(&scripts::SHIP_NEXT, &keys, &args).await?;
        let mut answer = answer.into_iter();
        let mut next = || answer.next().unwrap_or(redis::Value::Nil);
        let fence: i64 = redis::from_redis_value(next()).map_err(unreadable)?;
        let fence = match u64::try_from(fence) {
            Ok(fence) => fence,
            Err(_) => {
                let id: String = redis::from_redis_value(next()).map_err(unreadable)?;
                let location: String = redis::from_redis_value(next()).map_err(unreadable)?;
                let mismatch = binding::other(self.client.location(), &id, &location, self.mark.clone());
                return Err(self.refuse(mismatch));
            }
        };
        self.shipper.fence.store(fence, Ordering::Relaxed);
        if fence == 0 {
            return Ok(None);
        }
        let entries: RawEntries = redis::from_redis_value(next()).map_err(unreadable)?;
        let forgotten: HashMap<String, String> = redis::from_redis_value(next()).map_err(unreadable)?;
        let more = redis::from_redis_value::<u8>(next()).map_err(unreadable)? == 1;
        let changes = entries::read(entries, !more);
        let forgotten = forgotten.iter().filter_map(|(field, value)| entries::forgotten(field, value));
        Ok(Some(Next { fence, more, changes, forgotten: forgotten.collect() }))
    }

    /// Removes shipped entries from the outbox. False if another process has taken the lock meanwhile: it ships the
    /// same entries once more, which changes nothing.
    async fn shipped(
        &self,
        fence: u64,
        last: &str,
        entries: &[Entry],
        done: bool,
    ) -> Result<bool, StoreError> {
        let mut news: HashMap<RunId, (u64, u64, bool)> = HashMap::new();
        for entry in entries {
            for event in &entry.events {
                let ended = matches!(event.kind, EventKind::RunEnded { .. });
                news.insert(event.run, (entry.incarnations[&event.run], event.seq, ended));
            }
        }
        let keys = [self.keys.ship_lock(), self.keys.outbox(), self.keys.runs(), self.keys.archive()];
        let flag = |set: bool| if set { "1".to_owned() } else { "0".to_owned() };
        // A process on duty keeps the lock, so that it can use what it knows about runs for later spans.
        let let_go = done && !self.shipper.is_on_duty();
        let mut args = vec![self.keys.begin().to_owned(), fence.to_string()];
        args.extend([self.mark.id.to_string(), last.to_owned()]);
        args.extend([self.limits.key_memory.as_millis().to_string(), flag(let_go), news.len().to_string()]);
        for (run, (incarnation, seq, ended)) in news {
            args.extend([run.to_string(), incarnation.to_string(), seq.to_string(), flag(ended)]);
        }
        Ok(self.client.run::<u8>(&scripts::SHIP_DONE, &keys, &args).await? == 1)
    }

    /// Waits until all present entries have left the outbox. Shipping does not change the outcome of any call, so an
    /// error means that nothing was applied.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        self.ship_until_now().await.map_err(StoreError::not_applied)
    }

    async fn ship_until_now(&self) -> Result<(), StoreError> {
        let newest: RawEntries = self
            .client
            .query(redis::cmd("XREVRANGE").arg(self.keys.outbox()).arg("+").arg("-").arg("COUNT").arg(1))
            .await?;
        let Some((newest, _)) = newest.into_iter().next() else { return Ok(()) };
        let mut looks = PATIENCE.as_millis() / LOOK_EVERY.as_millis();
        while looks > 0 {
            if self.ship().await? != Shipped::NotOurTurn || self.has_left(&newest).await? {
                return Ok(());
            }
            looks -= 1;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(StoreError::unavailable("events are not shipped to the archive; try again"))
    }

    async fn has_left(&self, id: &str) -> Result<bool, StoreError> {
        let found: RawEntries =
            self.client.query(redis::cmd("XRANGE").arg(self.keys.outbox()).arg(id).arg(id)).await?;
        Ok(found.is_empty())
    }

    /// The duty: ships entries as soon as they arrive. One of the processes that share a Redis has it, until it stops.
    pub async fn ship_forever(self: Arc<Self>, stop: CancellationToken) {
        self.shipper.on_duty.store(true, Ordering::Relaxed);
        let (mut waiting, mut trouble) = (None, Once::default());
        while !stop.is_cancelled() {
            let pause = match self.ship().await {
                Ok(Shipped::Events(_)) => {
                    trouble.is_over();
                    tokio::select! {
                        failed = self.until_worthwhile(&mut waiting) => failed,
                        () = stop.cancelled() => false,
                    }
                }
                Ok(Shipped::NotOurTurn) => true,
                Err(error) => {
                    if trouble.is_news(&error) {
                        tracing::error!(%error, "events could not be shipped to the archive");
                    }
                    true
                }
            };
            if pause {
                tokio::select! {
                    () = tokio::time::sleep(IDLE) => {}
                    () = stop.cancelled() => {}
                }
            }
        }
        self.shipper.on_duty.store(false, Ordering::Relaxed);
        self.finish_shipping().await;
    }

    /// Ships the last changes before this process stops, and releases the lock, so that the next shipper need not wait.
    async fn finish_shipping(&self) {
        let left = match self.ship().await {
            // Stores the archive's current position for the process that starts next.
            Ok(_) => self.compare_archive().await,
            Err(error) => Err(error),
        };
        if let Err(error) = left {
            tracing::warn!(%error, "events are left for others to ship");
        }
        let _turn = self.shipper.pass.lock().await;
        self.leave_shipping().await;
    }

    /// Waits until the outbox has entries, and then for [`GATHER`] unless a caller waits for one of them. Whether that
    /// failed.
    async fn until_worthwhile(&self, waiting: &mut Option<Connection>) -> bool {
        let failed = self.until_more(waiting).await;
        if !failed {
            let _ = tokio::time::timeout(GATHER, self.shipper.urgent.notified()).await;
        }
        failed
    }

    /// Waits until the outbox has entries, for [`IDLE`] at most. Whether that failed.
    async fn until_more(&self, waiting: &mut Option<Connection>) -> bool {
        let wait = redis::cmd("XREAD")
            .arg("BLOCK")
            .arg(IDLE.as_millis() as u64)
            .arg("COUNT")
            .arg(1)
            .arg("STREAMS")
            .arg(self.keys.outbox())
            .arg("0")
            .to_owned();
        let connection = match waiting.take() {
            Some(connection) => Ok(connection),
            None => self.client.blocking().await,
        };
        let Ok(mut connection) = connection else { return true };
        let failed = wait.query_async::<redis::Value>(&mut connection).await.is_err();
        *waiting = (!failed).then_some(connection);
        failed
    }
}

fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("Redis answered something else than the outbox: {error}"))
}
