//! Publish and subscribe: Redis notifies idle workers of tasks, and followers of changes to runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use serde::Deserialize;
use switchyard_core::RunId;
use switchyard_core::in_flight::Want;
use switchyard_store::{Change, Followers, IdleWorkers, RunIndex, StoreError};
use tokio::sync::{Notify, mpsc, watch};

use crate::client::Client;
use crate::keys::Keys;
use crate::store::RedisStore;

/// How long to wait before connecting again after a failure.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);
/// The interval at which waiters look without a message: messages are lost if a connection breaks unnoticed.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How many runs one command subscribes to or unsubscribes from.
const AT_ONCE: usize = 1_000;

/// The callers of this process that wait: for tasks, for timers, for changes to runs.
#[derive(Debug)]
pub(crate) struct Waiters {
    pub(crate) timers: Notify,
    idle: IdleWorkers,
    followers: Followers,
    ask: mpsc::UnboundedSender<Asked>,
    asked: parking_lot::Mutex<Option<mpsc::UnboundedReceiver<Asked>>>,
}

/// A request to the listener about a run.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Follow(RunId),
    /// The run has ended: no more messages about it will come.
    Leave(RunId),
}

impl Default for Waiters {
    fn default() -> Self {
        let (ask, asked) = mpsc::unbounded_channel();
        Self {
            timers: Notify::new(),
            idle: IdleWorkers::default(),
            followers: Followers::default(),
            ask,
            asked: parking_lot::Mutex::new(Some(asked)),
        }
    }
}

impl Waiters {
    pub(crate) fn follow(&self, run: RunId) -> watch::Receiver<Change> {
        let receiver = self.followers.follow(run);
        self.ask(Asked::Follow(run));
        receiver
    }

    /// Follows a run without a subscription: the receiver sees only events that this process ships.
    pub(crate) fn follow_here(&self, run: RunId) -> watch::Receiver<Change> {
        self.followers.follow(run)
    }

    /// Tells the followers in this process. The archive has the change already.
    pub(crate) fn tell(&self, news: &[(RunId, Change)]) {
        self.followers.tell(news);
    }

    fn ask(&self, what: Asked) {
        // The listener lives as long as the store.
        let _ = self.ask.send(what);
    }
}

#[derive(Deserialize)]
struct News {
    seq: u64,
    ended: bool,
}

/// Receives messages on the one subscribed connection of a process.
pub(crate) struct Listener {
    client: Client,
    keys: Keys,
    archived: Arc<dyn RunIndex>,
    waiters: Arc<Waiters>,
    /// The prefix of run channels.
    runs: String,
}

impl Listener {
    pub(crate) fn new(
        client: Client,
        keys: Keys,
        archived: Arc<dyn RunIndex>,
        waiters: Arc<Waiters>,
    ) -> Self {
        let runs = format!("{}run:", keys.begin());
        Self { client, keys, archived, waiters, runs }
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
    async fn listen(&self, asked: &mut mpsc::UnboundedReceiver<Asked>) -> Result<(), StoreError> {
        let (mut sink, published) = self.client.subscribe().await?.split();
        sink.subscribe(self.keys.wake()).await.map_err(StoreError::unavailable)?;
        let before = self.waiters.followers.followed().into_iter().map(Asked::Follow).collect();
        let mut channels = Channels { sink, followed: HashSet::new() };
        self.change(before, &mut channels).await?;
        // Earlier messages are lost: all waiters look again.
        self.waiters.idle.wake_all();
        self.waiters.timers.notify_one();
        // The two run concurrently, so that messages do not wait for the answer to a subscription.
        tokio::select! {
            () = self.relay(published) => Ok(()),
            answer = self.change_forever(&mut channels, asked) => answer,
        }
    }

    /// Passes messages on to the waiters, until the connection breaks.
    async fn relay(&self, mut published: PubSubStream) {
        while let Some(message) = published.next().await {
            let text: String = message.get_payload().unwrap_or_default();
            match message.get_channel_name().strip_prefix(&self.runs) {
                Some(run) => self.tell(run, &text),
                None => self.wake(&text),
            }
        }
    }

    async fn change_forever(
        &self,
        channels: &mut Channels,
        asked: &mut mpsc::UnboundedReceiver<Asked>,
    ) -> Result<(), StoreError> {
        loop {
            let mut now = Vec::new();
            if asked.recv_many(&mut now, AT_ONCE).await == 0 {
                return Ok(());
            }
            self.change(now, channels).await?;
        }
    }

    /// Subscribes and unsubscribes. Then tells followers the archived state of their runs, because messages that were
    /// published before the subscription are lost.
    async fn change(&self, asked: Vec<Asked>, channels: &mut Channels) -> Result<(), StoreError> {
        let name = |run: &RunId| self.keys.run(*run);
        let Changes { followed, subscribe, leave } = channels.take_note(&asked);
        if !subscribe.is_empty() {
            let names: Vec<String> = subscribe.iter().map(name).collect();
            channels.sink.subscribe(names).await.map_err(StoreError::unavailable)?;
        }
        if !leave.is_empty() {
            let names: Vec<String> = leave.iter().map(name).collect();
            channels.sink.unsubscribe(names).await.map_err(StoreError::unavailable)?;
        }
        let left: Vec<RunId> =
            leave.into_iter().filter(|run| self.waiters.followers.is_followed(*run)).collect();
        if !left.is_empty() {
            tokio::spawn(follow_retried(self.archived.clone(), self.waiters.clone(), left));
        }
        if !followed.is_empty() {
            tokio::spawn(tell_archived(self.archived.clone(), self.waiters.clone(), followed));
        }
        Ok(())
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

    fn tell(&self, run: &str, text: &str) {
        let (Ok(run), Ok(news)) = (run.parse::<RunId>(), serde_json::from_str::<News>(text)) else { return };
        self.waiters.tell(&[(run, Change { seq: news.seq, ended: news.ended })]);
        if news.ended {
            self.waiters.ask(Asked::Leave(run));
        }
    }
}

/// The runs whose channels a connection is subscribed to.
struct Channels {
    sink: PubSubSink,
    followed: HashSet<RunId>,
}

/// Changes of subscriptions, applied in this order.
struct Changes {
    subscribe: Vec<RunId>,
    leave: HashSet<RunId>,
    /// Runs with callers that wait for the archived state.
    followed: Vec<RunId>,
}

impl Channels {
    fn take_note(&mut self, asked: &[Asked]) -> Changes {
        let (mut subscribe, mut leave, mut followed) = (Vec::new(), HashSet::new(), Vec::new());
        for what in asked {
            match what {
                Asked::Follow(run) => {
                    followed.push(*run);
                    if self.followed.insert(*run) && !leave.remove(run) {
                        subscribe.push(*run);
                    }
                }
                Asked::Leave(run) => {
                    if self.followed.remove(run) {
                        leave.insert(*run);
                    }
                }
            }
        }
        Changes { subscribe, leave, followed }
    }
}

/// Subscribes again to runs that were unsubscribed at their end and have been retried since.
async fn follow_retried(archived: Arc<dyn RunIndex>, waiters: Arc<Waiters>, runs: Vec<RunId>) {
    for run in runs {
        if let Ok(Some(record)) = archived.run(run).await
            && !record.status.is_terminal()
        {
            waiters.ask(Asked::Follow(run));
        }
    }
}

async fn tell_archived(archived: Arc<dyn RunIndex>, waiters: Arc<Waiters>, runs: Vec<RunId>) {
    for run in runs {
        let Ok(Some(record)) = archived.run(run).await else { continue };
        let ended = record.status.is_terminal();
        waiters.tell(&[(run, Change { seq: record.last_seq, ended })]);
        if ended {
            waiters.ask(Asked::Leave(run));
        }
    }
}

impl RedisStore {
    pub(crate) async fn wait_for_work(&self, want: &Want) {
        let woken = self.waiters.idle.line_up(want.queues.clone());
        // A task may have been queued between the caller's last look and its registration as a waiter.
        match self.queued().await {
            Ok(queues) if queues.iter().any(|queue| want.takes(queue)) => return,
            _ => {}
        }
        // A closed channel means that the listener wants the caller to look again.
        let _ = tokio::time::timeout(LOOK_EVERY, woken).await;
    }

    /// Queues that have unclaimed tasks, by the counters in `wf.queued`.
    async fn queued(&self) -> Result<Vec<String>, StoreError> {
        let streams: Vec<String> = self.client.query(redis::cmd("HKEYS").arg(self.keys.queued())).await?;
        let queue = |stream: &String| self.keys.queue_of(stream).map(|(queue, _)| queue.to_owned());
        Ok(streams.iter().filter_map(queue).collect())
    }
}
