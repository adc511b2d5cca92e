//! Tests that a submission while Redis is unavailable is retried, then refused, and never starts two runs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::{Acceptance, NewRun};
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, Idempotency};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{Archive, Clock, HotStore, ManualClock, StoreError, Unfinished};
use switchyard_store_redis::{RedisSettings, RedisStore, RetryPolicy};
use switchyard_test_servers::redis::Redis;
use tokio::sync::mpsc;

/// A manual clock that announces how long each caller sleeps.
#[derive(Debug)]
struct Watched {
    clock: ManualClock,
    asleep: mpsc::UnboundedSender<Duration>,
}

#[async_trait]
impl Clock for Watched {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn sleep_until(&self, until: Timestamp) {
        self.clock.sleep_until(until).await;
    }

    async fn sleep(&self, length: Duration) {
        self.asleep.send(length).expect("the test watches");
        self.clock.sleep(length).await;
    }
}

struct Fixture {
    redis: Redis,
    store: Arc<RedisStore>,
    archive: Arc<dyn Archive>,
    clock: ManualClock,
    asleep: mpsc::UnboundedReceiver<Duration>,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn open() -> Self {
        let (redis, folder) = (Redis::start(), tempfile::tempdir().expect("a folder"));
        let archive: Arc<dyn Archive> =
            Arc::new(DataFolder::open(folder.path()).expect("a data folder").archive().expect("an archive"));
        let clock = ManualClock::starting_at(Timestamp::from_millis(1_800_000_000_000));
        let (sender, asleep) = mpsc::unbounded_channel();
        let settings = RedisSettings {
            retry: RetryPolicy { retries: 2, delay: Duration::from_millis(500), backoff: 3.0 },
            clock: Some(Arc::new(Watched { clock: clock.clone(), asleep: sender })),
            ..RedisSettings::new(redis.url())
        };
        let store = Arc::new(RedisStore::open(settings, archive.clone()).await.expect("Redis answers"));
        store.learn(Sketch::chain(2).ir()).await.expect("learnt");
        Self { redis, store, archive, clock, asleep, _folder: folder }
    }

    fn submit(&self) -> tokio::task::JoinHandle<Result<Acceptance, StoreError>> {
        self.submit_as(id())
    }

    fn submit_as(&self, id: RunId) -> tokio::task::JoinHandle<Result<Acceptance, StoreError>> {
        let ir = Sketch::chain(2).ir();
        let accepted = Accepted {
            idempotency: Some(Idempotency { key: "order".into(), body: ir.hash }),
            ..Accepted::plain("w".into(), ir.hash, Payload::null())
        };
        let store = self.store.clone();
        tokio::spawn(async move { store.accept(NewRun { id, accepted }).await })
    }

    /// Waits until a caller sleeps, and advances the clock by that time.
    async fn let_pass(&mut self) -> Duration {
        let length = self.asleep.recv().await.expect("a caller waits");
        self.clock.advance(length);
        length
    }

    fn query(&self, words: &[&str]) {
        let mut connection = redis::Client::open(self.redis.url()).unwrap().get_connection().unwrap();
        redis::cmd(words[0]).arg(&words[1..]).query::<redis::Value>(&mut connection).unwrap();
    }

    async fn archived(&self) -> usize {
        self.archive.unfinished().await.expect("answered").len()
    }
}

fn id() -> RunId {
    RunId::new(Timestamp::from_millis(1), 2, 0)
}

#[tokio::test]
async fn redis_that_comes_back_in_time_is_not_noticed() {
    let mut fixture = Fixture::open().await;
    fixture.redis.stop();
    let submitted = fixture.submit();
    let first = fixture.asleep.recv().await.expect("a caller waits");
    assert_eq!(first, Duration::from_millis(500));
    fixture.redis.start_again();
    fixture.clock.advance(first);
    assert_eq!(submitted.await.expect("answered").expect("accepted"), Acceptance::New(id()));
    assert_eq!((fixture.archived().await, fixture.store.size().await.expect("answered").runs), (1, 1));
    let again = fixture.submit_as(RunId::new(Timestamp::from_millis(1), 3, 0)).await;
    let again = again.expect("answered").expect("accepted");
    assert!(matches!(again, Acceptance::Existing(run) if run == id()), "{again:?}");
}

#[tokio::test]
async fn redis_that_stays_away_is_an_error_and_nothing_is_accepted() {
    let mut fixture = Fixture::open().await;
    fixture.redis.stop();
    let submitted = fixture.submit();
    assert_eq!(fixture.let_pass().await, Duration::from_millis(500));
    assert_eq!(fixture.let_pass().await, Duration::from_millis(1_500));
    let refused = submitted.await.expect("answered").expect_err("Redis is away");
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    assert_eq!(fixture.archived().await, 0);
}

/// Once the run is archived it must not be refused: otherwise a repeated request would start a second one.
#[tokio::test]
async fn a_run_that_is_archived_is_accepted_whatever_redis_does() {
    let mut fixture = Fixture::open().await;
    // Every write of a new run fails.
    fixture.query(&["SET", "wf.runs", "in the way"]);
    let submitted = fixture.submit();
    fixture.let_pass().await;
    fixture.let_pass().await;
    assert_eq!(submitted.await.expect("answered").expect("accepted"), Acceptance::New(id()));
    assert_eq!(fixture.archived().await, 1);
    fixture.query(&["DEL", "wf.runs"]);
    let unfinished = [Unfinished { run: id(), last_seq: 1 }];
    assert_eq!(fixture.store.compare(&unfinished).await.expect("answered"), [id()], "recovery finds it");
}
