//! What is published: work for those who wait for it, news for those who follow runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use serde::Deserialize;
use switchyard_core::RunId;
use switchyard_core::yard::Want;
use switchyard_store::{Archive, Change, Followers, IdleWorkers, StoreError};
use tokio::sync::{Notify, mpsc, watch};

use crate::client::Client;
use crate::keys::Keys;
use crate::store::RedisStore;

/// How long until a lost connection is tried again.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);
/// Whoever waits looks by himself after this long: what is published is lost if a connection breaks unnoticed.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Who waits in this process, and for what.
#[derive(Debug)]
pub(crate) struct Waiters {
    pub(crate) timers: Notify,
    idle: IdleWorkers,
    followers: Followers,
    newly_followed: mpsc::UnboundedSender<RunId>,
    asked: parking_lot::Mutex<Option<mpsc::UnboundedReceiver<RunId>>>,
}

impl Default for Waiters {
    fn default() -> Self {
        let (newly_followed, asked) = mpsc::unbounded_channel();
        Self {
            timers: Notify::new(),
            idle: IdleWorkers::default(),
            followers: Followers::default(),
            newly_followed,
            asked: parking_lot::Mutex::new(Some(asked)),
        }
    }
}

impl Waiters {
    pub(crate) fn follow(&self, run: RunId) -> watch::Receiver<Change> {
        let receiver = self.followers.follow(run);
        // The listener lives as long as the store.
        let _ = self.newly_followed.send(run);
        receiver
    }
}

#[derive(Deserialize)]
struct News {
    seq: u64,
    ended: bool,
}

/// The one connection of a process that listens.
pub(crate) struct Listener {
    client: Client,
    keys: Keys,
    archive: Arc<dyn Archive>,
    waiters: Arc<Waiters>,
    /// What the names of run channels begin with.
    runs: String,
}

impl Listener {
    pub(crate) fn new(client: Client, keys: Keys, archive: Arc<dyn Archive>, waiters: Arc<Waiters>) -> Self {
        let runs = format!("{}run:", keys.begin());
        Self { client, keys, archive, waiters, runs }
    }

    pub(crate) async fn listen_forever(self) {
        let Some(mut asked) = self.waiters.asked.lock().take() else { return };
        loop {
            if let Err(error) = self.listen(&mut asked).await {
                tracing::debug!(%error, "not listening to Redis");
            }
            tokio::time::sleep(AFTER_TROUBLE).await;
        }
    }

    /// Listens until the connection breaks.
    async fn listen(&self, asked: &mut mpsc::UnboundedReceiver<RunId>) -> Result<(), StoreError> {
        let (mut sink, mut published) = self.client.listen().await?.split();
        let unavailable = |error: redis::RedisError| StoreError::unavailable(error);
        sink.subscribe(self.keys.wake()).await.map_err(unavailable)?;
        let mut followed = HashSet::new();
        for run in self.waiters.followers.followed() {
            self.subscribe(run, &mut followed, &mut sink).await?;
        }
        // Whatever was published before is missed: everybody looks again.
        self.waiters.idle.wake_all();
        self.waiters.timers.notify_one();
        self.relay(&mut sink, &mut published, &mut followed, asked).await
    }

    async fn relay(
        &self,
        sink: &mut PubSubSink,
        published: &mut PubSubStream,
        followed: &mut HashSet<RunId>,
        asked: &mut mpsc::UnboundedReceiver<RunId>,
    ) -> Result<(), StoreError> {
        loop {
            tokio::select! {
                message = published.next() => {
                    let Some(message) = message else { return Ok(()) };
                    let text: String = message.get_payload().unwrap_or_default();
                    match message.get_channel_name().strip_prefix(&self.runs) {
                        Some(run) => self.tell(run, &text, followed, sink).await?,
                        None => self.wake(&text),
                    }
                }
                run = asked.recv() => {
                    let Some(run) = run else { return Ok(()) };
                    self.subscribe(run, followed, sink).await?;
                }
            }
        }
    }

    fn wake(&self, text: &str) {
        match text.split_once(' ') {
            None => self.waiters.timers.notify_one(),
            Some((count, stream)) => {
                let Some((queue, _)) = self.keys.queue_of(stream) else { return };
                let count = count.parse::<usize>().unwrap_or(1).min(1_000);
                self.waiters.idle.wake(&vec![queue.into(); count]);
            }
        }
    }

    async fn tell(
        &self,
        run: &str,
        text: &str,
        followed: &mut HashSet<RunId>,
        sink: &mut PubSubSink,
    ) -> Result<(), StoreError> {
        let (Ok(run), Ok(news)) = (run.parse::<RunId>(), serde_json::from_str::<News>(text)) else {
            return Ok(());
        };
        self.waiters.followers.tell(&[(run, Change { seq: news.seq, ended: news.ended })]);
        if news.ended && followed.remove(&run) {
            sink.unsubscribe(self.keys.run(run)).await.map_err(StoreError::unavailable)?;
        }
        Ok(())
    }

    /// Subscribes, then tells what the archive has: what was published before went past us.
    async fn subscribe(
        &self,
        run: RunId,
        followed: &mut HashSet<RunId>,
        sink: &mut PubSubSink,
    ) -> Result<(), StoreError> {
        if followed.insert(run) {
            sink.subscribe(self.keys.run(run)).await.map_err(StoreError::unavailable)?;
        }
        let (archive, waiters) = (self.archive.clone(), self.waiters.clone());
        tokio::spawn(async move {
            if let Ok(Some(record)) = archive.run(run).await {
                let change = Change { seq: record.last_seq, ended: record.status.is_terminal() };
                waiters.followers.tell(&[(run, change)]);
            }
        });
        Ok(())
    }
}

impl RedisStore {
    pub(crate) async fn wait_for_work(&self, want: &Want) {
        let woken = self.waiters.idle.line_up(want.queues.clone());
        // Something may have been queued between the caller's last look and lining up.
        match self.queued().await {
            Ok(queues) if queues.iter().any(|queue| want.takes(queue)) => return,
            _ => {}
        }
        // A closed channel means that the listener says to look again.
        let _ = tokio::time::timeout(LOOK_EVERY, woken).await;
    }

    /// Queues that have something in them, as far as it is counted.
    async fn queued(&self) -> Result<Vec<String>, StoreError> {
        let streams: Vec<String> = self.client.query(redis::cmd("HKEYS").arg(self.keys.queued())).await?;
        let queue = |stream: &String| self.keys.queue_of(stream).map(|(queue, _)| queue.to_owned());
        Ok(streams.iter().filter_map(queue).collect())
    }
}
