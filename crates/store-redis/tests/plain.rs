//! Tests plain workers, which read streams and push signals without any Switchyard code. No crash loses a task or a
//! signal.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redis::Commands;
use switchyard_archive_sqlite::DataFolder;
use switchyard_core::error::NodeError;
use switchyard_core::in_flight::{Limits, NewRun, Want};
use switchyard_core::ir::AttemptLimit;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, ClaimRef, EventKind, RunStatus, Settled, TaskOutcome};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::plain::{About, Found, Offer, PlainWorkers, oversized};
use switchyard_store::{Archive, Clock, HotStore, ManualClock};
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::redis as server;

const SILENCE: Duration = Duration::from_secs(60);
const STREAM: &str = "wf.tasks.work";

/// A prefix, an archive and a clock of its own, for any number of processes.
struct Fixture {
    _folder: tempfile::TempDir,
    archive: Arc<dyn Archive>,
    settings: RedisSettings,
    clock: ManualClock,
    connection: redis::Connection,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataFolder::open(folder.path()).expect("a data folder");
        let clock = ManualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
        let settings = RedisSettings {
            prefix: server::fresh_prefix(),
            limits: Limits { deliveries_max: 3, ..Limits::default() },
            clock: Some(Arc::new(clock.clone())),
            ..RedisSettings::new(server::shared().url())
        };
        let client = redis::Client::open(server::shared().url()).expect("an address");
        Self {
            archive: Arc::new(data.archive().expect("an archive")),
            _folder: folder,
            settings,
            clock,
            connection: client.get_connection().expect("Redis answers"),
        }
    }

    async fn process(&self) -> RedisStore {
        RedisStore::open(self.settings.clone(), self.archive.clone()).await.expect("Redis answers")
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.settings.prefix)
    }

    async fn start(&self, store: &RedisStore, sketch: &Sketch) -> RunId {
        let ir = sketch.ir();
        store.learn(ir.clone()).await.expect("learnt");
        let id = RunId::new(self.clock.now(), rand::random(), 0);
        let accepted = Accepted::plain("w".into(), ir.hash, Payload::null());
        store.accept(NewRun { id, accepted }).await.expect("accepted");
        // Plain readers need the group; the duty creates it where it is missing.
        store.take_back(SILENCE).await.expect("looked through");
        id
    }

    /// Reads new entries as a plain reader does: entry, run, node.
    fn read(&mut self, reader: &str) -> Vec<(String, String, String)> {
        type Entries = Vec<(String, HashMap<String, String>)>;
        let mut read = redis::cmd("XREADGROUP");
        read.arg(&["GROUP", "workers", reader, "COUNT", "10", "STREAMS"]).arg(self.name(STREAM)).arg(">");
        let reply: Option<Vec<(String, Entries)>> =
            read.query(&mut self.connection).expect("the group is there");
        let entries = reply.into_iter().flatten().flat_map(|(_, entries)| entries);
        entries.map(|(id, fields)| (id, fields["run_id"].clone(), fields["node_id"].clone())).collect()
    }

    /// Makes an entry look as if its reader had been silent for this long.
    fn age(&mut self, entry: &str, reader: &str, idle: Duration) {
        let mut claim = redis::cmd("XCLAIM");
        claim.arg(self.name(STREAM)).arg("workers").arg(reader).arg(0).arg(entry);
        claim.arg("IDLE").arg(idle.as_millis() as u64).arg("JUSTID");
        claim.exec(&mut self.connection).expect("claimed");
    }

    fn pending(&mut self) -> usize {
        let mut ask = redis::cmd("XPENDING");
        ask.arg(self.name(STREAM)).arg("workers").arg("-").arg("+").arg(100);
        ask.query::<Vec<redis::Value>>(&mut self.connection).expect("answered").len()
    }

    fn length(&mut self) -> usize {
        redis::cmd("XLEN").arg(self.name(STREAM)).query(&mut self.connection).expect("answered")
    }

    fn push(&mut self, signal: &str) {
        let list = self.name("completion_signals");
        self.connection.rpush::<_, _, ()>(list, signal).expect("pushed");
    }
}

fn about(run: RunId, node: &str, entry: Option<&str>) -> About {
    About { run, node: node.into(), delivery: entry.map(str::to_owned), worker: "plain".into() }
}

async fn offer(store: &RedisStore, about: &About) -> Box<Offer> {
    match store.find_node(about).await.expect("answered") {
        Found::Ready(offer) => offer,
        other => panic!("{other:?}"),
    }
}

fn done() -> TaskOutcome {
    TaskOutcome::Succeeded(Payload::from_value(&serde_json::json!(7)))
}

#[tokio::test]
async fn a_reader_that_dies_has_its_tasks_delivered_again_and_in_the_end_they_are_poison() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    let run = fixture.start(&store, &Sketch::chain(1)).await;
    for delivery in 1..=3 {
        let read = fixture.read("reader");
        let [(entry, read_run, node)] = &read[..] else { panic!("delivery {delivery}: {read:?}") };
        assert_eq!((read_run.as_str(), node.as_str()), (&*run.to_string(), "n0"));
        assert_eq!(store.take_back(SILENCE).await.expect("a pass"), 0, "it may take its time");
        fixture.age(entry, "reader", SILENCE + Duration::from_secs(1));
        assert_eq!(store.take_back(SILENCE).await.expect("a pass"), 1);
        assert_eq!(fixture.pending(), 0);
    }
    assert!(fixture.read("reader").is_empty());
    assert_eq!(fixture.length(), 0);
    store.archived().await.expect("archived");
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!((record.status, &*record.error.expect("an error").code), (RunStatus::Failed, "poisoned"));
    let events = fixture.archive.events(run, 0, 100).await.expect("read");
    let readers = events.iter().filter(
        |event| matches!(&event.kind, EventKind::NodeStarted { worker, .. } if &**worker == "reader"),
    );
    assert_eq!(readers.count(), 3, "the history says who had it");
    assert_eq!(fixture.archive.dead_letters(10).await.expect("read")[0].run_id, Some(run));
}

#[tokio::test]
async fn a_task_that_was_acknowledged_too_early_is_not_lost() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    fixture.start(&store, &Sketch::chain(1)).await;
    let (entry, ..) = fixture.read("hasty").remove(0);
    let stream = fixture.name(STREAM);
    redis::cmd("XACK")
        .arg(&[&stream, "workers", &entry])
        .exec(&mut fixture.connection)
        .expect("acknowledged");
    assert_eq!(store.take_back(SILENCE).await.expect("a pass"), 0);
    assert_eq!(fixture.pending(), 1, "it is in the group again (I7)");
    fixture.age(&entry, "switchyard", SILENCE);
    assert_eq!(store.take_back(SILENCE).await.expect("a pass"), 1);
    assert_eq!(fixture.read("another").len(), 1);
}

#[tokio::test]
async fn a_compensation_is_done_like_any_other_task() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    let sketch = Sketch::new().node("book", &[]).with(|book| book.compensated = true).node("pay", &["book"]);
    let run = fixture.start(&store, &sketch).await;
    let failed = TaskOutcome::Failed(NodeError::permanent("broke", "no money"));
    for (node, outcome) in [("book", done()), ("pay", failed), ("book/compensate", done())] {
        let (entry, _, read) = fixture.read("plain").remove(0);
        assert_eq!(read, node);
        store.take_signals().await.expect("taken");
        let about = about(run, node, Some(&entry));
        let offered = offer(&store, &about).await;
        assert!(store.settle_offer("signal", &about, &offered, &outcome).await.expect("settled"));
    }
    store.archived().await.expect("archived");
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!((record.status, &*record.error.expect("an error").code), (RunStatus::Failed, "broke"));
}

#[tokio::test]
async fn what_our_own_workers_hold_is_left_to_their_leases() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    let run = fixture.start(&store, &Sketch::chain(2)).await;
    let want = Want { worker: "ours".into(), queues: ["work".into()].into(), max: 1, lease: Some(SILENCE) };
    let task = store.step(Vec::new(), &want).await.expect("claimed").1.remove(0);
    let (pending, entry) = (fixture.pending(), store.find_node(&about(run, "n0", None)).await);
    let Found::Held { claim, delivery: Some(entry) } = entry.expect("answered") else { panic!("not held") };
    assert_eq!((pending, claim), (1, task.claim));
    fixture.age(&entry, "ours", SILENCE * 2);
    assert_eq!(store.take_back(SILENCE).await.expect("a pass"), 0);
    assert_eq!((fixture.pending(), fixture.length()), (1, 1));
}

#[tokio::test]
async fn a_mover_that_dies_between_taking_and_settling_loses_no_signal() {
    let mut fixture = Fixture::new();
    let (dying, living) = (fixture.process().await, fixture.process().await);
    let run = fixture.start(&dying, &Sketch::chain(1)).await;
    let (entry, ..) = fixture.read("reader").remove(0);
    fixture.push("first");
    fixture.push("second");
    assert_eq!(dying.take_signals().await.expect("taken"), ["first", "second"]);
    assert_eq!(living.take_signals().await.expect("taken"), Vec::<String>::new());
    let about = about(run, "n0", Some(&entry));
    let offered = offer(&dying, &about).await;

    fixture.clock.advance(Duration::from_secs(16));
    assert_eq!(living.take_signals().await.expect("taken"), ["first", "second"], "in their order");
    // The first process was only slow, but another one has taken over its signals.
    let late = dying.settle_offer("first", &about, &offered, &done()).await;
    assert!(late.is_err(), "{late:?}");
    let offered = offer(&living, &about).await;
    assert!(living.settle_offer("first", &about, &offered, &done()).await.expect("settled"));
    living.drop_signal("second").await.expect("dropped");
    assert_eq!(living.take_signals().await.expect("taken"), Vec::<String>::new());
    assert_eq!(dying.take_signals().await.expect("taken"), Vec::<String>::new());
    living.archived().await.expect("archived");
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(record.status, RunStatus::Succeeded);
    assert_eq!((fixture.pending(), fixture.length()), (0, 0));
}

#[tokio::test]
async fn signals_that_are_too_large_are_cut_off_and_large_ones_come_a_few_at_a_time() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    fixture.push(&format!("{{\"output\": \"{}\"}}", "x".repeat(20_000_000)));
    fixture.push("small");
    let large = "y".repeat(10 << 20);
    (0..3).for_each(|_| fixture.push(&large));
    let taken = store.take_signals().await.expect("taken");
    assert_eq!(oversized(&taken[0]), Some(20_000_014));
    assert!(
        taken[0].starts_with("oversized:20000014:{\"output\": \"xxx") && taken[0].len() < 1_100,
        "{}",
        taken[0]
    );
    let sizes: Vec<usize> = taken[1..].iter().map(String::len).collect();
    assert_eq!(sizes, [5, large.len(), large.len()], "the third large one has to wait");
    assert_eq!(store.take_signals().await.expect("taken"), taken, "until they are settled");
    for signal in &taken {
        store.drop_signal(signal).await.expect("dropped");
    }
    assert_eq!(store.take_signals().await.expect("taken"), [large.as_str()]);

    // The same for an oversized signal that the process waited for.
    store.drop_signal(&large).await.expect("dropped");
    fixture.push(&"z".repeat(20_000_000));
    store.signals_ready().await;
    let taken = store.take_signals().await.expect("taken");
    assert_eq!((taken.len(), oversized(&taken[0])), (1, Some(20_000_000)));
}

#[tokio::test]
async fn a_signal_that_comes_to_two_movers_counts_once() {
    let mut fixture = Fixture::new();
    let (one, other) = (fixture.process().await, fixture.process().await);
    let run = fixture.start(&one, &Sketch::new().node("a", &[]).node("b", &[])).await;
    let about = about(run, "a", None);
    one.take_signals().await.expect("taken");
    other.take_signals().await.expect("taken");
    let (first, second) = (offer(&one, &about).await, offer(&other, &about).await);
    let outcome = done();
    let (first, second) = tokio::join!(
        one.settle_offer("s", &about, &first, &outcome),
        other.settle_offer("s", &about, &second, &outcome)
    );
    assert!(first.expect("answered") ^ second.expect("answered"));
    assert!(matches!(one.find_node(&about).await.expect("answered"), Found::Passed));
    let read = fixture.read("reader");
    assert_eq!(one.take_back(SILENCE).await.expect("a pass"), 0);
    assert_eq!(
        (read.len(), fixture.pending(), fixture.length()),
        (2, 1, 1),
        "the entry of what is done is void"
    );
}

#[tokio::test]
async fn a_delivery_that_was_settled_says_nothing_about_the_next_attempt() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    let sketch = Sketch::new().node("a", &[]).with(|a| a.max_attempts = 3);
    let run = fixture.start(&store, &sketch).await;
    store.take_signals().await.expect("taken");
    let (entry, ..) = fixture.read("reader").remove(0);
    let first = about(run, "a", Some(&entry));
    let failed = TaskOutcome::Failed(NodeError::retryable("oops", "it failed"));
    let offered = offer(&store, &first).await;
    assert!(store.settle_offer("s", &first, &offered, &failed).await.expect("settled"));
    fixture.clock.advance(Duration::from_secs(3600));
    assert_eq!(store.fire_timers().await.expect("fired").0, 1);
    let (next, ..) = fixture.read("reader").remove(0);
    assert!(matches!(store.find_node(&first).await.expect("answered"), Found::Passed), "it is another one");
    assert_eq!(offer(&store, &about(run, "a", Some(&next))).await.task.attempt, 2);
}

#[tokio::test]
async fn a_worker_that_asks_for_its_task_holds_a_claim() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    let run = fixture.start(&store, &Sketch::chain(1)).await;
    store.take_signals().await.expect("taken");
    let (entry, ..) = fixture.read("reader").remove(0);
    let about = about(run, "n0", Some(&entry));
    let offered = offer(&store, &about).await;
    assert!(store.claim_offer("s", &about, &offered, SILENCE, "the task").await.expect("claimed"));
    let list = fixture.name(&format!("task:{run}:n0:{entry}"));
    assert_eq!(fixture.connection.lpop::<_, String>(list, None).expect("an answer"), "the task");
    let Found::Held { claim, delivery } = store.find_node(&about).await.expect("answered") else {
        panic!("not held")
    };
    assert_eq!(delivery, Some(entry.clone()));
    fixture.age(&entry, "reader", SILENCE * 2);
    assert_eq!(store.take_back(SILENCE).await.expect("a pass"), 0, "the lease is what counts now");
    let claim = ClaimRef { run, node: "n0".into(), claim };
    let settled = store.settle_claim("s", claim.clone(), done()).await.expect("answered");
    assert_eq!((settled, fixture.pending(), fixture.length()), (Settled::Applied, 0, 0));
    let again = store.settle_claim("s", claim, done()).await.expect("answered");
    assert_eq!(again, Settled::Stale, "its run has ended");
}

#[tokio::test]
async fn the_limit_of_an_attempt_counts_from_when_its_worker_asked_for_the_task() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    let limit = Duration::from_secs(20);
    let sketch = Sketch::chain(1).with(|node| node.limit = AttemptLimit::Own(limit));
    let run = fixture.start(&store, &sketch).await;
    store.take_signals().await.expect("taken");
    let (entry, ..) = fixture.read("reader").remove(0);
    fixture.clock.advance(limit * 2);
    assert_eq!(store.reclaim().await, Ok(0), "before that, how long it may keep what it read is what counts");
    let about = about(run, "n0", Some(&entry));
    let offered = offer(&store, &about).await;
    assert!(store.claim_offer("s", &about, &offered, SILENCE, "the task").await.expect("claimed"));
    let Found::Held { claim, .. } = store.find_node(&about).await.expect("answered") else {
        panic!("not held")
    };
    let claim = ClaimRef { run, node: "n0".into(), claim };
    fixture.clock.advance(limit - Duration::from_secs(1));
    store.heartbeat(std::slice::from_ref(&claim), Some(SILENCE)).await.expect("answered");
    assert_eq!(store.reclaim().await, Ok(0));
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(store.reclaim().await, Ok(1));
    let late = store.settle_claim("s", claim, done()).await.expect("answered");
    assert_eq!((late, fixture.pending(), fixture.length()), (Settled::Stale, 0, 0));
    store.archived().await.expect("archived");
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!((record.status, &*record.error.expect("an error").code), (RunStatus::Failed, "timeout"));
}

#[tokio::test]
async fn queues_are_counted_whoever_reads_them() {
    let mut fixture = Fixture::new();
    let store = fixture.process().await;
    for _ in 0..3 {
        fixture.start(&store, &Sketch::chain(1)).await;
    }
    fixture.read("reader");
    store.take_back(SILENCE).await.expect("a pass");
    fixture.start(&store, &Sketch::chain(1)).await;
    let depths = store.queues().await.expect("answered");
    let work = depths.iter().find(|depth| &*depth.queue == "work").expect("the queue");
    let [_, normal, _] = work.bands;
    assert_eq!((normal.waiting, normal.claimed, normal.oldest), (1, 3, Some(fixture.clock.now())));
    let queued: Option<usize> =
        fixture.connection.hget(fixture.name("wf.queued"), fixture.name(STREAM)).expect("answered");
    assert_eq!(queued, Some(1), "what plain readers took is counted out");
}
