//! Tests which workers count as alive or as ghosts, and that no task is lost when a worker leaves (I7).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ::redis as redis_rs;
use async_trait::async_trait;
use switchyard_archive_sqlite::DataFolder;
use switchyard_conformance::hot_store::fresh_operation;
use switchyard_core::in_flight::{Command, NewRun, Want};
use switchyard_core::ir::Ir;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, ClaimRef, RunStatus, Settled, Settlement, Task, TaskOutcome};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_observe::Observe;
use switchyard_store::{Archive, HotStore, ManualClock};
use switchyard_store_redis::{
    CleanedUp, CleanupPolicy, ConsumerMonitor, ConsumerStatus, LivePods, MonitorSettings, Pass, RedisAdmin,
    RedisSettings, RedisStore, WorkerReport,
};
use switchyard_test_servers::redis;

const HOUR: Duration = Duration::from_secs(3600);
const STREAM: &str = "wf.tasks.work";

/// A store with a prefix and a clock of its own.
struct Fixture {
    store: Arc<RedisStore>,
    archive: Arc<dyn Archive>,
    clock: ManualClock,
    prefix: String,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let archive: Arc<dyn Archive> =
            Arc::new(DataFolder::open(folder.path()).expect("a data folder").archive().expect("an archive"));
        let clock = ManualClock::starting_at(Timestamp::from_millis(1_800_000_000_000));
        let prefix = redis::fresh_prefix();
        let settings = RedisSettings {
            prefix: prefix.clone(),
            clock: Some(Arc::new(clock.clone())),
            ..RedisSettings::new(redis::shared().url())
        };
        let store = Arc::new(RedisStore::open(settings, archive.clone()).await.expect("Redis answers"));
        store.learn(steps()).await.expect("learnt");
        Self { store, archive, clock, prefix, _folder: folder }
    }

    fn admin(&self) -> RedisAdmin {
        self.store.admin()
    }

    async fn accept(&self, serial: u64) -> RunId {
        let id = RunId::new(Timestamp::from_millis(1_700_000_000_000), serial, 0);
        let accepted = Accepted::plain("w".into(), steps().hash, Payload::null());
        self.store.accept(NewRun { id, accepted }).await.expect("accepted");
        id
    }

    async fn claim(&self, worker: &str, max: usize) -> Vec<Task> {
        self.store.step(Vec::new(), &want(worker, max)).await.expect("claimed").1
    }

    async fn settle(&self, task: &Task) -> Settled {
        let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
        let settlement = Settlement { claim, outcome: TaskOutcome::Succeeded(Payload::null()) };
        self.store.step(vec![settlement], &Want::nothing("w".into())).await.expect("settled").0[0]
    }

    /// Executes all remaining tasks as a live worker.
    async fn finish(&self) {
        loop {
            let tasks = self.claim("finisher", 10).await;
            if tasks.is_empty() {
                return;
            }
            for task in &tasks {
                assert_eq!(self.settle(task).await, Settled::Applied);
            }
        }
    }

    async fn status(&self, run: RunId) -> RunStatus {
        self.store.archived().await.expect("archived");
        self.archive.run(run).await.expect("answered").expect("known").status
    }

    /// Reads entries as a plain worker does, with Redis commands.
    fn read_plainly(&self, consumer: &str, count: usize) {
        let (stream, mut connection) = (format!("{}{STREAM}", self.prefix), connection());
        let group = ["CREATE", &stream, "workers", "0"];
        // The group may exist.
        let _ = redis_rs::cmd("XGROUP").arg(&group).query::<()>(&mut connection);
        let read = ["GROUP", "workers", consumer, "COUNT", &count.to_string(), "STREAMS", &stream, ">"];
        redis_rs::cmd("XREADGROUP").arg(&read).query::<redis_rs::Value>(&mut connection).expect("read");
    }

    /// The name and number of pending entries of every consumer.
    async fn members(&self) -> Vec<(String, usize)> {
        let members = self.admin().consumers(HOUR, None).await.expect("listed");
        members.into_iter().map(|member| (member.name, member.pending)).collect()
    }

    async fn report(&self, name: &str) {
        self.admin().report(&report(name)).await.expect("reported");
    }
}

fn connection() -> redis_rs::Connection {
    let client = redis_rs::Client::open(redis::shared().url()).expect("an address");
    client.get_connection().expect("Redis answers")
}

/// A graph of three independent nodes.
fn steps() -> Arc<Ir> {
    Sketch::new().node("a", &[]).node("b", &[]).node("c", &[]).ir()
}

fn want(worker: &str, max: usize) -> Want {
    let lease = Some(Duration::from_secs(30));
    Want { worker: worker.into(), queues: ["work".into()].into(), max, lease }
}

fn report(name: &str) -> WorkerReport {
    WorkerReport {
        name: name.to_owned(),
        types: vec!["http".to_owned(), "function*".to_owned()],
        slots: 4,
        busy: 1,
        host: "here".to_owned(),
        process: 7,
        version: "1".to_owned(),
        started: Timestamp::from_millis(5),
        holds: Duration::from_secs(30),
    }
}

fn cancel() -> Command {
    Command::Cancel { by: "me".into(), reason: "".into(), compensate: false, now: false }
}

fn policy() -> CleanupPolicy {
    CleanupPolicy { idle_min: Duration::ZERO, dry_run: false, lock: HOUR, every: Duration::ZERO }
}

async fn clean_up(admin: &RedisAdmin, policy: &CleanupPolicy) -> CleanedUp {
    match admin.clean_up(policy, None).await.expect("a pass") {
        Pass::Made(done) => done,
        Pass::NotNow(wait) => panic!("not now, but in {wait:?}"),
    }
}

#[tokio::test]
async fn workers_are_alive_as_long_as_they_say_so() {
    let fixture = Fixture::open().await;
    fixture.report("a").await;
    fixture.clock.advance(Duration::from_secs(20));
    fixture.report("b").await;
    let alive = |workers: Vec<switchyard_store_redis::Worker>| {
        workers.into_iter().filter(|worker| worker.alive).map(|worker| worker.name).collect::<Vec<_>>()
    };
    assert_eq!(alive(fixture.admin().workers().await.expect("listed")), ["a", "b"]);
    fixture.clock.advance(Duration::from_secs(20));
    let workers = fixture.admin().workers().await.expect("listed");
    assert_eq!((workers[0].slots, workers[0].busy, workers[0].types.len()), (4, 1, 2));
    assert_eq!(alive(workers), ["b"]);
    fixture.admin().sign_off("b").await.expect("signed off");
    assert_eq!(fixture.admin().workers().await.expect("listed").len(), 1);
    // Workers are forgotten after a while.
    fixture.clock.advance(Duration::from_secs(2 * 24 * 3600));
    fixture.report("c").await;
    let names: Vec<String> =
        fixture.admin().workers().await.expect("listed").into_iter().map(|worker| worker.name).collect();
    assert_eq!(names, ["c"]);
}

#[tokio::test]
async fn a_ghost_goes_after_everything_it_had_pending_was_moved() {
    let fixture = Fixture::open().await;
    let run = fixture.accept(1).await;
    let held = fixture.claim("ghost", 1).await.remove(0);
    fixture.read_plainly("ghost", 2);
    let gone = fixture.accept(2).await;
    fixture.read_plainly("ghost", 1);
    fixture.store.command(gone, fresh_operation(), cancel()).await.expect("cancelled");
    fixture.report("heir").await;
    assert_eq!(fixture.members().await, [("ghost".to_owned(), 4)]);

    let done = clean_up(&fixture.admin(), &policy()).await;
    let [ghost] = &done.ghosts[..] else { panic!("{done:?}") };
    assert!(ghost.deleted);
    assert_eq!((ghost.returned, ghost.claimed, ghost.void, ghost.kept), (2, 1, 1, 0));
    assert_eq!(fixture.members().await, [("heir".to_owned(), 1)]);

    // Claimed tasks stay with their worker, tasks that were only read are handed out again, each once.
    assert_eq!(fixture.settle(&held).await, Settled::Applied);
    fixture.finish().await;
    assert_eq!(fixture.status(run).await, RunStatus::Succeeded);
    assert_eq!(fixture.store.size().await.expect("answered").runs, 0);
}

#[tokio::test]
async fn a_ghost_stays_while_nobody_can_take_over_what_it_holds() {
    let fixture = Fixture::open().await;
    let run = fixture.accept(1).await;
    let held = fixture.claim("ghost", 3).await;
    assert_eq!(held.len(), 3);
    let done = clean_up(&fixture.admin(), &policy()).await;
    assert!(!done.ghosts[0].deleted);
    assert_eq!(done.ghosts[0].kept, 3);
    assert_eq!(fixture.members().await, [("ghost".to_owned(), 3)]);
    // The leases run out, the claims are taken back, and then the consumer is removed.
    fixture.clock.advance(Duration::from_secs(31));
    assert_eq!(fixture.store.reclaim().await.expect("reclaimed"), 3);
    assert_eq!(clean_up(&fixture.admin(), &policy()).await.deleted(), 1);
    fixture.finish().await;
    assert_eq!(fixture.status(run).await, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_claim_without_a_lease_comes_back_when_its_holder_is_a_ghost() {
    let fixture = Fixture::open().await;
    let run = fixture.accept(1).await;
    let for_ever = Want { lease: None, ..want("ghost", 3) };
    assert_eq!(fixture.store.step(Vec::new(), &for_ever).await.expect("claimed").1.len(), 3);
    assert_eq!(fixture.store.reclaim().await.expect("nothing"), 0);
    assert_eq!(clean_up(&fixture.admin(), &policy()).await.deleted(), 0);
    assert_eq!(fixture.store.reclaim().await.expect("reclaimed"), 3);
    assert_eq!(clean_up(&fixture.admin(), &policy()).await.deleted(), 1);
    fixture.finish().await;
    assert_eq!(fixture.status(run).await, RunStatus::Succeeded);
}

#[tokio::test]
async fn whoever_lives_or_has_read_lately_is_no_ghost() {
    let fixture = Fixture::open().await;
    fixture.accept(1).await;
    fixture.claim("reports", 1).await;
    fixture.claim("silent", 1).await;
    fixture.report("reports").await;
    let patient = CleanupPolicy { idle_min: HOUR, ..policy() };
    assert_eq!(clean_up(&fixture.admin(), &patient).await.ghosts, []);
    let standings = |members: Vec<switchyard_store_redis::Consumer>| {
        members.into_iter().map(|member| (member.name, member.standing)).collect::<Vec<_>>()
    };
    let listed = standings(fixture.admin().consumers(HOUR, None).await.expect("listed"));
    assert_eq!(
        listed,
        [("reports".to_owned(), ConsumerStatus::Alive), ("silent".to_owned(), ConsumerStatus::Unknown)]
    );
    let done = clean_up(&fixture.admin(), &CleanupPolicy { dry_run: true, ..policy() }).await;
    let found: Vec<_> = done.ghosts.iter().map(|ghost| (&*ghost.consumer.name, ghost.deleted)).collect();
    assert_eq!(found, [("silent", false)]);
    assert_eq!(fixture.members().await.len(), 2, "a dry run changes nothing");
    fixture.clock.advance(Duration::from_secs(31));
    assert_eq!(clean_up(&fixture.admin(), &policy()).await.ghosts.len(), 2);
}

#[derive(Debug)]
struct Pods(Result<BTreeSet<String>, String>);

#[async_trait]
impl LivePods for Pods {
    async fn names(&self) -> Result<BTreeSet<String>, String> {
        self.0.clone()
    }
}

#[tokio::test]
async fn a_worker_whose_pod_is_there_is_no_ghost() {
    let fixture = Fixture::open().await;
    fixture.accept(1).await;
    fixture.read_plainly("pod-1", 1);
    fixture.read_plainly("pod-2", 1);
    let observe = Observe::default();
    let monitor = |pods| ConsumerMonitor {
        admin: fixture.admin(),
        metrics: observe.metrics().clone(),
        pods: Some(Arc::new(Pods(pods))),
        settings: MonitorSettings { cleanup: policy(), long: HOUR, watch_every: None },
    };
    let error = monitor(Err("no answer from there".to_owned())).clean_up().await.expect_err("no pods");
    assert!(error.to_string().contains("no answer from there"), "{error}");
    assert_eq!(fixture.members().await.len(), 2, "without an answer no member is gone");
    let there = Ok(["pod-1".to_owned()].into());
    let Pass::Made(done) = monitor(there).clean_up().await.expect("a pass") else { panic!("not now") };
    assert_eq!(done.ghosts.iter().map(|ghost| &*ghost.consumer.name).collect::<Vec<_>>(), ["pod-2"]);
    assert_eq!(fixture.members().await, [("pod-1".to_owned(), 1)]);
    let page = observe.metrics().page(None);
    for line in [
        "switchyard_consumer_scans_total 1",
        "switchyard_ghost_consumers_found_total 1",
        "switchyard_ghost_consumers_deleted_total 1",
        r#"switchyard_pending_entries_moved_total{how="returned"} 1"#,
        "switchyard_consumer_cleanup_errors_total 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
}

#[tokio::test]
async fn one_process_at_a_time_cleans_up_once_an_interval() {
    let fixture = Fixture::open().await;
    let (one, other) = (fixture.admin(), fixture.admin());
    let hourly = CleanupPolicy { every: HOUR, ..policy() };
    assert!(matches!(one.clean_up(&hourly, None).await.expect("a pass"), Pass::Made(_)));
    assert_eq!(other.clean_up(&hourly, None).await.expect("a pass"), Pass::NotNow(HOUR));
    fixture.clock.advance(HOUR);
    assert!(matches!(other.clean_up(&hourly, None).await.expect("a pass"), Pass::Made(_)));

    // Another process has the lock.
    fixture.clock.advance(HOUR);
    let lock = format!("{}wf.lock:consumers", fixture.prefix);
    let mut redis = connection();
    let _: () =
        redis_rs::cmd("HSET").arg(&lock).arg(&["owner", "x", "fence", "99"]).query(&mut redis).unwrap();
    let _: () = redis_rs::cmd("PEXPIRE").arg(&lock).arg(60_000).query(&mut redis).unwrap();
    assert!(matches!(one.clean_up(&hourly, None).await.expect("a pass"), Pass::NotNow(_)));
}

/// Lists pods while another process takes the lock.
#[derive(Debug)]
struct Overtaken(String);

#[async_trait]
impl LivePods for Overtaken {
    async fn names(&self) -> Result<BTreeSet<String>, String> {
        let _: () = redis_rs::cmd("HSET")
            .arg(&self.0)
            .arg(&["owner", "x", "fence", "99"])
            .query(&mut connection())
            .unwrap();
        Ok(BTreeSet::new())
    }
}

#[tokio::test]
async fn a_pass_that_was_overtaken_deletes_nothing() {
    let fixture = Fixture::open().await;
    fixture.accept(1).await;
    fixture.read_plainly("ghost", 1);
    let overtaken = Overtaken(format!("{}wf.lock:consumers", fixture.prefix));
    let pass = fixture.admin().clean_up(&policy(), Some(&overtaken)).await.expect("a pass");
    assert_eq!(pass, Pass::Made(CleanedUp { scanned: 1, ghosts: Vec::new() }));
    assert_eq!(fixture.members().await, [("ghost".to_owned(), 1)]);
}

#[tokio::test]
async fn a_worker_that_leaves_takes_nothing_with_it() {
    let fixture = Fixture::open().await;
    let run = fixture.accept(1).await;
    let held = fixture.claim("leaves", 1).await.remove(0);
    fixture.read_plainly("leaves", 1);
    fixture.report("leaves").await;
    fixture.report("stays").await;
    let left = fixture.admin().leave("leaves").await.expect("left");
    assert_eq!((left.groups, left.returned, left.claimed, left.kept), (1, 1, 1, 0));
    assert_eq!(fixture.members().await, [("stays".to_owned(), 1)]);
    assert_eq!(fixture.admin().workers().await.expect("listed").len(), 1);
    assert_eq!(fixture.settle(&held).await, Settled::Applied);
    fixture.finish().await;
    assert_eq!(fixture.status(run).await, RunStatus::Succeeded);
}

#[tokio::test]
async fn entries_that_are_pending_for_long_are_reported_and_void_ones_removed() {
    let fixture = Fixture::open().await;
    let run = fixture.accept(1).await;
    fixture.claim("works", 1).await;
    fixture.read_plainly("plain", 1);
    let gone = fixture.accept(2).await;
    fixture.read_plainly("plain", 2);
    fixture.store.command(gone, fresh_operation(), cancel()).await.expect("cancelled");
    assert_eq!(fixture.admin().long_pending(HOUR).await.expect("looked").entries, []);

    let observe = Observe::default();
    let rounds = MonitorSettings { cleanup: policy(), long: Duration::ZERO, watch_every: Some(HOUR) };
    let monitor = ConsumerMonitor {
        admin: fixture.admin(),
        metrics: observe.metrics().clone(),
        pods: None,
        settings: rounds,
    };
    let Pass::Made(found) = monitor.watch(HOUR).await.expect("a pass") else { panic!("not now") };
    let seen: Vec<_> = found
        .entries
        .iter()
        .map(|entry| (&*entry.consumer, entry.held, entry.run == run.to_string()))
        .collect();
    assert_eq!(seen, [("works", true, true), ("plain", false, true), ("plain", false, true)]);
    assert_eq!(found.void, 1);
    assert_eq!(fixture.members().await, [("plain".to_owned(), 2), ("works".to_owned(), 1)]);
    let page = observe.metrics().page(None);
    let line = r#"switchyard_long_pending_entries{queue="work",priority="normal"} 3"#;
    assert!(page.lines().any(|found| found == line), "{page}");
    assert!(matches!(monitor.watch(HOUR).await.expect("a pass"), Pass::NotNow(_)));
}

/// A worker never reports, and the cleanup takes it for a ghost all the time: every run still ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cleaning_up_amid_the_work_loses_nothing() {
    const RUNS: u64 = 60;
    let fixture = Fixture::open().await;
    let mut runs = Vec::new();
    for serial in 0..RUNS {
        runs.push(fixture.accept(serial).await);
    }
    fixture.report("heir").await;
    let admin = fixture.admin();
    let stop = tokio_util::sync::CancellationToken::new();
    let stopping = stop.clone();
    let cleaning = tokio::spawn(async move {
        let mut deleted = 0;
        while !stopping.is_cancelled() {
            deleted += clean_up(&admin, &policy()).await.deleted();
        }
        deleted
    });
    fixture.finish().await;
    stop.cancel();
    assert!(cleaning.await.expect("cleaned up") > 0, "they never met");
    for run in runs {
        assert_eq!(fixture.status(run).await, RunStatus::Succeeded);
    }
}
