//! From the outbox to the archive: in order, in batches, one shipper at a time.
//!
//! An entry is what changed together, and is archived together. It leaves the outbox when the archive has it; then
//! those who follow are told, and runs that have ended are removed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use switchyard_core::run::{Event, EventKind};
use switchyard_core::{RunId, Timestamp};
use switchyard_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::scripts;
use crate::store::RedisStore;

/// How long the lock of a shipper lasts that says nothing any more.
const LOCK: Duration = Duration::from_secs(30);
/// Entries of one batch. One has the events of up to 200 steps.
const BATCH: usize = 200;
/// How long a waiting shipper sleeps at most, and one whose turn it is not.
const IDLE: Duration = Duration::from_secs(1);
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
            shipped += events.len();
            if !events.is_empty()
                && let Err(error) = self.archive.append(events).await
            {
                self.diverged(error, &entries).await?;
                continue;
            }
            let done = read < batch;
            self.shipped(fence, &last, &entries, done).await?;
            if done {
                return Ok(Shipped::Events(shipped));
            }
        }
    }

    async fn next_entries(&self, batch: usize) -> Result<Option<Next>, StoreError> {
        let keys = [self.keys.ship_lock(), self.keys.outbox(), self.keys.forgotten()];
        let args = [self.name.clone(), LOCK.as_millis().to_string(), batch.to_string()];
        let answer: Vec<redis::Value> = self.client.run(&scripts::SHIP_NEXT, &keys, &args).await?;
        let mut answer = answer.into_iter();
        let mut next = || answer.next().unwrap_or(redis::Value::Nil);
        let fence: u64 = redis::from_redis_value(next()).map_err(unreadable)?;
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

    async fn shipped(
        &self,
        fence: u64,
        last: &str,
        entries: &[Entry],
        let_go: bool,
    ) -> Result<(), StoreError> {
        let mut news: HashMap<RunId, (u64, u64, bool)> = HashMap::new();
        for entry in entries {
            for event in &entry.events {
                let ended = matches!(event.kind, EventKind::RunEnded { .. });
                news.insert(event.run, (entry.lives[&event.run], event.seq, ended));
            }
        }
        let keys = [self.keys.ship_lock(), self.keys.outbox(), self.keys.runs()];
        let flag = |set: bool| if set { "1".to_owned() } else { "0".to_owned() };
        let mut args = vec![self.keys.begin().to_owned(), fence.to_string(), last.to_owned()];
        args.extend([self.limits.key_memory.as_millis().to_string(), flag(let_go), news.len().to_string()]);
        for (run, (life, seq, ended)) in news {
            args.extend([run.to_string(), life.to_string(), seq.to_string(), flag(ended)]);
        }
        // Whoever took over in the meantime ships the same once more, which changes nothing.
        self.client.run::<u8>(&scripts::SHIP_DONE, &keys, &args).await.map(drop)
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

    /// The duty: ships what comes, as soon as it comes.
    pub async fn ship_forever(self: Arc<Self>, stop: CancellationToken) {
        let mut waiting = None;
        while !stop.is_cancelled() {
            let pause = match self.ship().await {
                Ok(Shipped::Events(_)) => self.until_more(&mut waiting).await,
                Ok(Shipped::NotOurTurn) => true,
                Err(error) => {
                    tracing::error!(%error, "events could not be shipped to the archive");
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
