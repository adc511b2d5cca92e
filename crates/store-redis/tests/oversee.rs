//! The life of workers: who is alive, who is a ghost, and that nothing is lost when one goes (I7).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ::redis as redis_rs;
use async_trait::async_trait;
use switchyard_archive::DataFolder;
use switchyard_core::ir::Ir;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, ClaimRef, RunStatus, Settled, Settlement, Task, TaskOutcome};
use switchyard_core::yard::{Command, NewRun, Want};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_observe::Observe;
use switchyard_store::{Archive, HotStore, ManualClock};
use switchyard_store_conformance::fresh_operation;
use switchyard_store_redis::{
    CleanedUp, CleanupPolicy, LivePods, Lookout, Overseer, Pass, RedisSettings, RedisStore, Rounds, Standing,
    WorkerReport,
};
use switchyard_test_servers::redis;

const HOUR: Duration = Duration::from_secs(3600);
const STREAM: &str = "wf.tasks.work";

/// A store with a prefix and a clock of its own.
struct Yard {
    store: Arc<RedisStore>,
    archive: Arc<dyn Archive>,
    clock: ManualClock,
    prefix: String,
    _folder: tempfile::TempDir,
}

impl Yard {
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

    fn overseer(&self) -> Overseer {
        self.store.overseer()
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

    /// Everything that is left to do, by a worker that is alive.
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

    /// As a worker does that knows nothing but Redis.
    fn read_plainly(&self, consumer: &str, count: usize) {
        let (stream, mut connection) = (format!("{}{STREAM}", self.prefix), connection());
        let group = ["CREATE", &stream, "workers", "0"];
        // It may be there.
        let _ = redis_rs::cmd("XGROUP").arg(&group).query::<()>(&mut connection);
        let read = ["GROUP", "workers", consumer, "COUNT", &count.to_string(), "STREAMS", &stream, ">"];
        redis_rs::cmd("XREADGROUP").arg(&read).query::<redis_rs::Value>(&mut connection).expect("read");
    }

    /// Name and pending of every member of the group.
    async fn members(&self) -> Vec<(String, usize)> {
        let members = self.overseer().consumers(HOUR, None).await.expect("listed");
        members.into_iter().map(|member| (member.name, member.pending)).collect()
    }

    async fn report(&self, name: &str) {
        self.overseer().report(&report(name)).await.expect("reported");
    }
}

fn connection() -> redis_rs::Connection {
    let client = redis_rs::Client::open(redis::shared().url()).expect("an address");
    client.get_connection().expect("Redis answers")
}

/// Three that nothing holds back.
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

async fn clean_up(overseer: &Overseer, policy: &CleanupPolicy) -> CleanedUp {
    match overseer.clean_up(policy, None).await.expect("a pass") {
        Pass::Made(done) => done,
        Pass::NotNow(wait) => panic!("not now, but in {wait:?}"),
    }
}

#[tokio::test]
async fn workers_are_alive_as_long_as_they_say_so() {
    let yard = Yard::open().await;
    yard.report("a").await;
    yard.clock.advance(Duration::from_secs(20));
    yard.report("b").await;
    let alive = |workers: Vec<switchyard_store_redis::Worker>| {
        workers.into_iter().filter(|worker| worker.alive).map(|worker| worker.name).collect::<Vec<_>>()
    };
    assert_eq!(alive(yard.overseer().workers().await.expect("listed")), ["a", "b"]);
    yard.clock.advance(Duration::from_secs(20));
    let workers = yard.overseer().workers().await.expect("listed");
    assert_eq!((workers[0].slots, workers[0].busy, workers[0].types.len()), (4, 1, 2));
    assert_eq!(alive(workers), ["b"]);
    yard.overseer().sign_off("b").await.expect("signed off");
    assert_eq!(yard.overseer().workers().await.expect("listed").len(), 1);
    // Workers are forgotten after a while.
    yard.clock.advance(Duration::from_secs(2 * 24 * 3600));
    yard.report("c").await;
    let names: Vec<String> =
        yard.overseer().workers().await.expect("listed").into_iter().map(|worker| worker.name).collect();
    assert_eq!(names, ["c"]);
}

#[tokio::test]
async fn a_ghost_goes_after_everything_it_had_pending_was_moved() {
    let yard = Yard::open().await;
    let run = yard.accept(1).await;
    let held = yard.claim("ghost", 1).await.remove(0);
    yard.read_plainly("ghost", 2);
    let gone = yard.accept(2).await;
    yard.read_plainly("ghost", 1);
    yard.store.command(gone, fresh_operation(), cancel()).await.expect("cancelled");
    yard.report("heir").await;
    assert_eq!(yard.members().await, [("ghost".to_owned(), 4)]);

    let done = clean_up(&yard.overseer(), &policy()).await;
    let [ghost] = &done.ghosts[..] else { panic!("{done:?}") };
    assert!(ghost.deleted);
    assert_eq!((ghost.returned, ghost.claimed, ghost.void, ghost.kept), (2, 1, 1, 0));
    assert_eq!(yard.members().await, [("heir".to_owned(), 1)]);

    // What was held is still its holder's, what was read is handed out again, and all of it once.
    assert_eq!(yard.settle(&held).await, Settled::Applied);
    yard.finish().await;
    assert_eq!(yard.status(run).await, RunStatus::Succeeded);
    assert_eq!(yard.store.size().await.expect("answered").runs, 0);
}

#[tokio::test]
async fn a_ghost_stays_while_nobody_can_take_over_what_it_holds() {
    let yard = Yard::open().await;
    let run = yard.accept(1).await;
    let held = yard.claim("ghost", 3).await;
    assert_eq!(held.len(), 3);
    let done = clean_up(&yard.overseer(), &policy()).await;
    assert!(!done.ghosts[0].deleted);
    assert_eq!(done.ghosts[0].kept, 3);
    assert_eq!(yard.members().await, [("ghost".to_owned(), 3)]);
    // The leases run out, the claims are taken back, and then it goes.
    yard.clock.advance(Duration::from_secs(31));
    assert_eq!(yard.store.reclaim().await.expect("reclaimed"), 3);
    assert_eq!(clean_up(&yard.overseer(), &policy()).await.deleted(), 1);
    yard.finish().await;
    assert_eq!(yard.status(run).await, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_claim_without_a_lease_comes_back_when_its_holder_is_a_ghost() {
    let yard = Yard::open().await;
    let run = yard.accept(1).await;
    let for_ever = Want { lease: None, ..want("ghost", 3) };
    assert_eq!(yard.store.step(Vec::new(), &for_ever).await.expect("claimed").1.len(), 3);
    assert_eq!(yard.store.reclaim().await.expect("nothing"), 0);
    assert_eq!(clean_up(&yard.overseer(), &policy()).await.deleted(), 0);
    assert_eq!(yard.store.reclaim().await.expect("reclaimed"), 3);
    assert_eq!(clean_up(&yard.overseer(), &policy()).await.deleted(), 1);
    yard.finish().await;
    assert_eq!(yard.status(run).await, RunStatus::Succeeded);
}

#[tokio::test]
async fn whoever_lives_or_has_read_lately_is_no_ghost() {
    let yard = Yard::open().await;
    yard.accept(1).await;
    yard.claim("reports", 1).await;
    yard.claim("silent", 1).await;
    yard.report("reports").await;
    let patient = CleanupPolicy { idle_min: HOUR, ..policy() };
    assert_eq!(clean_up(&yard.overseer(), &patient).await.ghosts, []);
    let standings = |members: Vec<switchyard_store_redis::Consumer>| {
        members.into_iter().map(|member| (member.name, member.standing)).collect::<Vec<_>>()
    };
    let listed = standings(yard.overseer().consumers(HOUR, None).await.expect("listed"));
    assert_eq!(listed, [("reports".to_owned(), Standing::Alive), ("silent".to_owned(), Standing::Unknown)]);
    let done = clean_up(&yard.overseer(), &CleanupPolicy { dry_run: true, ..policy() }).await;
    let found: Vec<_> = done.ghosts.iter().map(|ghost| (&*ghost.consumer.name, ghost.deleted)).collect();
    assert_eq!(found, [("silent", false)]);
    assert_eq!(yard.members().await.len(), 2, "a dry run changes nothing");
    yard.clock.advance(Duration::from_secs(31));
    assert_eq!(clean_up(&yard.overseer(), &policy()).await.ghosts.len(), 2);
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
    let yard = Yard::open().await;
    yard.accept(1).await;
    yard.read_plainly("pod-1", 1);
    yard.read_plainly("pod-2", 1);
    let observe = Observe::default();
    let lookout = |pods| Lookout {
        overseer: yard.overseer(),
        metrics: observe.metrics().clone(),
        pods: Some(Arc::new(Pods(pods))),
        rounds: Rounds { cleanup: policy(), long: HOUR, watch_every: None },
    };
    let error = lookout(Err("no answer from there".to_owned())).clean_up().await.expect_err("no pods");
    assert!(error.to_string().contains("no answer from there"), "{error}");
    assert_eq!(yard.members().await.len(), 2, "without an answer nobody is gone");
    let there = Ok(["pod-1".to_owned()].into());
    let Pass::Made(done) = lookout(there).clean_up().await.expect("a pass") else { panic!("not now") };
    assert_eq!(done.ghosts.iter().map(|ghost| &*ghost.consumer.name).collect::<Vec<_>>(), ["pod-2"]);
    assert_eq!(yard.members().await, [("pod-1".to_owned(), 1)]);
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
    let yard = Yard::open().await;
    let (one, other) = (yard.overseer(), yard.overseer());
    let hourly = CleanupPolicy { every: HOUR, ..policy() };
    assert!(matches!(one.clean_up(&hourly, None).await.expect("a pass"), Pass::Made(_)));
    assert_eq!(other.clean_up(&hourly, None).await.expect("a pass"), Pass::NotNow(HOUR));
    yard.clock.advance(HOUR);
    assert!(matches!(other.clean_up(&hourly, None).await.expect("a pass"), Pass::Made(_)));

    // Another process has the lock.
    yard.clock.advance(HOUR);
    let lock = format!("{}lock:consumers:cleanup", yard.prefix);
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
    let yard = Yard::open().await;
    yard.accept(1).await;
    yard.read_plainly("ghost", 1);
    let overtaken = Overtaken(format!("{}lock:consumers:cleanup", yard.prefix));
    let pass = yard.overseer().clean_up(&policy(), Some(&overtaken)).await.expect("a pass");
    assert_eq!(pass, Pass::Made(CleanedUp { scanned: 1, ghosts: Vec::new() }));
    assert_eq!(yard.members().await, [("ghost".to_owned(), 1)]);
}

#[tokio::test]
async fn a_worker_that_leaves_takes_nothing_with_it() {
    let yard = Yard::open().await;
    let run = yard.accept(1).await;
    let held = yard.claim("leaves", 1).await.remove(0);
    yard.read_plainly("leaves", 1);
    yard.report("leaves").await;
    yard.report("stays").await;
    let left = yard.overseer().leave("leaves").await.expect("left");
    assert_eq!((left.groups, left.returned, left.claimed, left.kept), (1, 1, 1, 0));
    assert_eq!(yard.members().await, [("stays".to_owned(), 1)]);
    assert_eq!(yard.overseer().workers().await.expect("listed").len(), 1);
    assert_eq!(yard.settle(&held).await, Settled::Applied);
    yard.finish().await;
    assert_eq!(yard.status(run).await, RunStatus::Succeeded);
}

#[tokio::test]
async fn entries_that_are_pending_for_long_are_reported_and_void_ones_removed() {
    let yard = Yard::open().await;
    let run = yard.accept(1).await;
    yard.claim("works", 1).await;
    yard.read_plainly("plain", 1);
    let gone = yard.accept(2).await;
    yard.read_plainly("plain", 2);
    yard.store.command(gone, fresh_operation(), cancel()).await.expect("cancelled");
    assert_eq!(yard.overseer().long_pending(HOUR).await.expect("looked").entries, []);

    let observe = Observe::default();
    let rounds = Rounds { cleanup: policy(), long: Duration::ZERO, watch_every: Some(HOUR) };
    let lookout =
        Lookout { overseer: yard.overseer(), metrics: observe.metrics().clone(), pods: None, rounds };
    let Pass::Made(found) = lookout.watch(HOUR).await.expect("a pass") else { panic!("not now") };
    let seen: Vec<_> = found
        .entries
        .iter()
        .map(|entry| (&*entry.consumer, entry.held, entry.run == run.to_string()))
        .collect();
    assert_eq!(seen, [("works", true, true), ("plain", false, true), ("plain", false, true)]);
    assert_eq!(found.void, 1);
    assert_eq!(yard.members().await, [("plain".to_owned(), 2), ("works".to_owned(), 1)]);
    let page = observe.metrics().page(None);
    let line = r#"switchyard_long_pending_entries{queue="work",priority="normal"} 3"#;
    assert!(page.lines().any(|found| found == line), "{page}");
    assert!(matches!(lookout.watch(HOUR).await.expect("a pass"), Pass::NotNow(_)));
}

/// A worker that never says it is alive, and a cleaner that takes such workers for ghosts: they are in each
/// other's way all the time, and every run ends all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cleaning_up_amid_the_work_loses_nothing() {
    const RUNS: u64 = 60;
    let yard = Yard::open().await;
    let mut runs = Vec::new();
    for serial in 0..RUNS {
        runs.push(yard.accept(serial).await);
    }
    yard.report("heir").await;
    let overseer = yard.overseer();
    let stop = tokio_util::sync::CancellationToken::new();
    let stopping = stop.clone();
    let cleaning = tokio::spawn(async move {
        let mut deleted = 0;
        while !stopping.is_cancelled() {
            deleted += clean_up(&overseer, &policy()).await.deleted();
        }
        deleted
    });
    yard.finish().await;
    stop.cancel();
    assert!(cleaning.await.expect("cleaned up") > 0, "they never met");
    for run in runs {
        assert_eq!(yard.status(run).await, RunStatus::Succeeded);
    }
}
