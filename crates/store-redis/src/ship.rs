//! From the outbox to the archive: in order, in batches, one shipper at a time.
//!
//! An entry is what changed together, and is archived together. It leaves the outbox when the archive has it; then
//! those who follow are told, and runs that have ended are removed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use switchyard_core::run::{Event, EventKind};
use switchyard_core::{RunId, Timestamp};
use switchyard_observe::Once;
use switchyard_store::{StoreError, Unarchived, news};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scripts;
use crate::store::RedisStore;

/// How long the lock of a shipper lasts that says nothing any more: how long events wait when it was killed.
const LOCK: Duration = Duration::from_secs(3);
/// How often one that waits for the archive says that it is still there.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// Entries of one batch. One has the events of up to 200 steps.
const BATCH: usize = 200;
/// How long a waiting shipper sleeps at most, and one whose turn it is not.
const IDLE: Duration = Duration::from_secs(1);
/// How long what nobody waits for may gather. Archived one by one, steps would be slowed down by being archived.
const GATHER: Duration = Duration::from_millis(2);
/// How long to wait for another shipper until giving up.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What one pass came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shipped {
    Events(usize),
    /// Somebody else ships.
    NotOurTurn,
}

/// What happened together.
pub(crate) struct Entry {
    id: String,
    more: bool,
    pub(crate) events: Vec<Event>,
    /// By run: which of its lives these events are of.
    pub(crate) lives: HashMap<RunId, u64>,
}

type Entries = Vec<(String, Vec<(String, String)>)>;

/// What is next in the outbox.
struct Next {
    fence: u64,
    /// Entries of the stream. Some of them count as several changes.
    read: usize,
    changes: Vec<Entry>,
    forgotten: HashMap<RunId, u64>,
}

impl RedisStore {
    /// One pass: ships whatever there is.
    pub async fn ship(&self) -> Result<Shipped, StoreError> {
        let _turn = self.shipping.lock().await;
        let shipped = self.ship_batches().await;
        if shipped.is_err() {
            // Somebody else may reach the archive.
            self.leave_shipping().await;
        }
        shipped
    }

    async fn ship_batches(&self) -> Result<Shipped, StoreError> {
        let mut shipped = 0;
        let mut batch = BATCH;
        loop {
            let Some(next) = self.next_entries(batch).await? else {
                return Ok(Shipped::NotOurTurn);
            };
            let Next { fence, read, changes, forgotten } = next;
            let mut entries = whole(changes);
            if entries.is_empty() && read > 0 {
                // One change of more entries than a batch has.
                batch *= 4;
                continue;
            }
            let last = entries.last().map_or_else(String::new, |entry| entry.id.clone());
            let tainted = taint(&mut entries, forgotten);
            if !tainted.is_empty() {
                self.forget(&tainted).await?;
            }
            let events: Vec<Event> = entries.iter().flat_map(|entry| entry.events.iter().cloned()).collect();
            let begun = Instant::now();
            if let Err(error) = self.append_as_shipper(fence, events.clone()).await {
                self.diverged(error, &entries).await?;
                continue;
            }
            let took = begun.elapsed();
            // Those who follow here need not wait until Redis has passed it on.
            self.waiters.tell(&news(&events));
            let done = read < batch;
            if !self.shipped(fence, &last, &entries, done).await? {
                return Ok(Shipped::NotOurTurn);
            }
            shipped += events.len();
            // Whoever takes entries out of the outbox is the only one to do so, and tells what happened.
            self.observe.archived(&events, took);
            self.report(fence, &events).await;
            if done {
                return Ok(Shipped::Events(shipped));
            }
        }
    }

    /// The lock is renewed meanwhile: the archive may take long, and nobody else could be faster.
    async fn append_as_shipper(&self, fence: u64, events: Vec<Event>) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let mut appended = self.archive.append(events);
        let answer = loop {
            tokio::select! {
                answer = &mut appended => break answer,
                () = tokio::time::sleep(RENEW_EVERY) => {}
            }
            // Should it fail, `ship_done` finds out.
            let _ = self.lease(fence, LOCK).await;
        };
        self.note_archive(&answer);
        answer
    }

    /// How much has happened that the archive does not have.
    pub(crate) async fn behind(&self) -> Result<Unarchived, StoreError> {
        let outbox = self.keys.outbox();
        let mut ask = redis::pipe();
        ask.cmd("XLEN").arg(&outbox);
        ask.cmd("XRANGE").arg(&outbox).arg("-").arg("+").arg("COUNT").arg(1);
        ask.cmd("TIME");
        let (changes, oldest, (s, us)): (usize, Entries, (u64, u64)) = self.client.query_all(&ask).await?;
        // Entries are numbered by the server's clock, in milliseconds.
        let began = oldest.first().and_then(|(id, _)| id.split_once('-')?.0.parse::<u64>().ok());
        let oldest = began.map_or(0, |began| (s * 1_000 + us / 1_000).saturating_sub(began));
        Ok(Unarchived { changes, oldest: Duration::from_millis(oldest) })
    }

    /// Whether the archive answers, for those who watch.
    pub(crate) fn note_archive(&self, answer: &Result<(), StoreError>) {
        self.observe.metrics().archive_is_up(!matches!(answer, Err(error) if error.is_outage()));
    }

    /// Spans of what was shipped. A run that this shipper has not seen before is looked up: somebody else accepted it,
    /// or shipped until now.
    async fn report(&self, fence: u64, events: &[Event]) {
        if self.reported_under.swap(fence, Ordering::Relaxed) != fence {
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

    async fn lease(&self, fence: u64, lasts: Duration) -> Result<bool, StoreError> {
        let args = [fence.to_string(), lasts.as_millis().to_string()];
        let ours: u8 = self.client.run(&scripts::SHIP_LEASE, &[self.keys.ship_lock()], &args).await?;
        Ok(ours == 1)
    }

    /// Lets go of the lock, if it is ours. If that fails, it runs out.
    async fn leave_shipping(&self) {
        let fence = self.fence.swap(0, Ordering::Relaxed);
        if fence > 0 {
            let _ = self.lease(fence, Duration::ZERO).await;
        }
    }

    async fn next_entries(&self, batch: usize) -> Result<Option<Next>, StoreError> {
        let keys = [self.keys.ship_lock(), self.keys.outbox(), self.keys.forgotten()];
        let args = [self.name.clone(), LOCK.as_millis().to_string(), batch.to_string()];
        let answer: Vec<redis::Value> = self.client.run(&scripts::SHIP_NEXT, &keys, &args).await?;
        let mut answer = answer.into_iter();
        let mut next = || answer.next().unwrap_or(redis::Value::Nil);
        let fence: u64 = redis::from_redis_value(next()).map_err(unreadable)?;
        self.fence.store(fence, Ordering::Relaxed);
        if fence == 0 {
            return Ok(None);
        }
        let entries: Entries = redis::from_redis_value(next()).map_err(unreadable)?;
        let forgotten: HashMap<String, u64> = redis::from_redis_value(next()).map_err(unreadable)?;
        let read = entries.len();
        let mut changes = Vec::with_capacity(read);
        for entry in entries {
            read_entry(entry, &mut changes)?;
        }
        let forgotten = forgotten.into_iter().filter_map(|(run, life)| Some((run.parse().ok()?, life)));
        Ok(Some(Next { fence, read, changes, forgotten: forgotten.collect() }))
    }

    /// Takes entries out of the outbox. False if somebody has taken over meanwhile: then they ship the same once more,
    /// which changes nothing.
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
                news.insert(event.run, (entry.lives[&event.run], event.seq, ended));
            }
        }
        let keys = [self.keys.ship_lock(), self.keys.outbox(), self.keys.runs()];
        let flag = |set: bool| if set { "1".to_owned() } else { "0".to_owned() };
        // A process on duty keeps the lock: what it knows about the runs that it reports then stays of use.
        let let_go = done && !self.on_duty.load(Ordering::Relaxed);
        let mut args = vec![self.keys.begin().to_owned(), fence.to_string(), last.to_owned()];
        args.extend([self.limits.key_memory.as_millis().to_string(), flag(let_go), news.len().to_string()]);
        for (run, (life, seq, ended)) in news {
            args.extend([run.to_string(), life.to_string(), seq.to_string(), flag(ended)]);
        }
        Ok(self.client.run::<u8>(&scripts::SHIP_DONE, &keys, &args).await? == 1)
    }

    /// Returns when everything that is in the outbox now has left it.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        let newest: Entries = self
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
        let found: Entries =
            self.client.query(redis::cmd("XRANGE").arg(self.keys.outbox()).arg(id).arg(id)).await?;
        Ok(found.is_empty())
    }

    /// The duty: ships what comes, as soon as it comes. One process of those that share a Redis does, until it stops.
    pub async fn ship_forever(self: Arc<Self>, stop: CancellationToken) {
        self.on_duty.store(true, Ordering::Relaxed);
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
        self.on_duty.store(false, Ordering::Relaxed);
        self.finish_shipping().await;
    }

    /// What this process did last is in the archive when it is gone, and the next shipper need not wait for its lock.
    async fn finish_shipping(&self) {
        if let Err(error) = self.ship().await {
            tracing::warn!(%error, "events are left for others to ship");
        }
        let _turn = self.shipping.lock().await;
        self.leave_shipping().await;
    }

    /// Waits until there is something in the outbox, and a moment for more of it unless somebody may be waiting for it.
    /// Whether that failed.
    async fn until_worthwhile(&self, waiting: &mut Option<redis::aio::MultiplexedConnection>) -> bool {
        let failed = self.until_more(waiting).await;
        if !failed {
            let _ = tokio::time::timeout(GATHER, self.urgent.notified()).await;
        }
        failed
    }

    /// Waits until there is something in the outbox, a while at most. Whether that failed.
    async fn until_more(&self, waiting: &mut Option<redis::aio::MultiplexedConnection>) -> bool {
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
    StoreError::Corrupt(format!("an entry of the outbox in Redis makes no sense: {error}"))
}

/// Without a last change that has not been read to its end.
fn whole(mut entries: Vec<Entry>) -> Vec<Entry> {
    while entries.last().is_some_and(|entry| entry.more) {
        entries.pop();
    }
    entries
}

/// Takes out what belongs to forgotten lives, and everything that hangs together with it. What else is to be forgotten.
pub(crate) fn taint(entries: &mut Vec<Entry>, mut forgotten: HashMap<RunId, u64>) -> HashMap<RunId, u64> {
    let mut tainted = HashMap::new();
    if forgotten.is_empty() {
        return tainted;
    }
    entries.retain(|entry| {
        let void = entry.lives.iter().any(|(run, life)| forgotten.get(run) == Some(life));
        if void {
            for (run, life) in &entry.lives {
                if forgotten.insert(*run, *life) != Some(*life) {
                    tainted.insert(*run, *life);
                }
            }
        }
        !void
    });
    tainted
}

/// Reads an entry of the stream. One whose runs have nothing to do with each other counts as many.
fn read_entry(
    (id, fields): (String, Vec<(String, String)>),
    entries: &mut Vec<Entry>,
) -> Result<(), StoreError> {
    let begin = entries.len();
    let empty =
        |id: &String| Entry { id: id.clone(), more: false, events: Vec::new(), lives: HashMap::new() };
    let (mut more, mut apart) = (false, false);
    let mut of_run: HashMap<Option<RunId>, usize> = HashMap::new();
    for (header, body) in fields {
        match &*header {
            "more" => more = true,
            "apart" => apart = true,
            _ => {
                let (event, life) = read_event(&header, &body)?;
                let at = *of_run.entry(apart.then_some(event.run)).or_insert_with(|| {
                    entries.push(empty(&id));
                    entries.len() - 1
                });
                entries[at].lives.insert(event.run, life);
                entries[at].events.push(event);
            }
        }
    }
    if entries.len() == begin {
        entries.push(empty(&id));
    }
    entries[begin..].iter_mut().for_each(|entry| entry.more = more);
    Ok(())
}

fn read_event(header: &str, body: &str) -> Result<(Event, u64), StoreError> {
    let mut words = header.split(' ');
    let mut word = || words.next().ok_or_else(|| unreadable(header));
    let run = word()?.parse().map_err(unreadable)?;
    let seq = word()?.parse().map_err(unreadable)?;
    let at = Timestamp::from_millis(word()?.parse().map_err(unreadable)?);
    let life = word()?.parse().map_err(unreadable)?;
    let kind: EventKind = serde_json::from_str(body).map_err(unreadable)?;
    Ok((Event { run, seq, at, kind }, life))
}
