//! Tests that every run continues, and no work is skipped, after Redis loses data or goes back to an earlier state.

use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::{Acceptance, Command, NewRun, Want};
use switchyard_core::ir::Ir;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    Accepted, ChildSpec, ChildrenPlan, ClaimRef, Concurrency, EventKind, Operation, Run, RunStatus, Settled,
    Settlement, Task, TaskOutcome, WaitFor,
};
use switchyard_core::{Hash, OperationId, Payload, RunId, Timestamp};
use switchyard_store::{Archive, HotStore, StoreError};
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::redis::Redis;
use tempfile::TempDir;

struct Scene {
    server: Redis,
    store: RedisStore,
    archive: Arc<dyn Archive>,
    irs: Vec<Arc<Ir>>,
    serial: u64,
    _folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataFolder::open(folder.path()).expect("a data folder");
        let archive: Arc<dyn Archive> = Arc::new(data.archive().expect("an archive"));
        let server = Redis::start();
        let settings = RedisSettings::new(server.url());
        let store = RedisStore::open(settings, archive.clone()).await.expect("Redis answers");
        let irs = vec![Sketch::chain(3).ir(), Sketch::chain(1).ir()];
        for ir in &irs {
            store.learn(ir.clone()).await.expect("learnt");
        }
        Self { server, store, archive, irs, serial: 0, _folder: folder }
    }

    fn fresh_run(&mut self) -> RunId {
        self.serial += 1;
        RunId::new(Timestamp::from_millis(1_700_000_000_000), self.serial, 0)
    }

    async fn start(&mut self) -> RunId {
        let id = self.fresh_run();
        let accepted = Accepted::plain("w".into(), self.irs[0].hash, Payload::null());
        let answer = self.store.accept(NewRun { id, accepted }).await;
        assert_eq!(answer, Ok(Acceptance::New(id)));
        id
    }

    /// Starts a run that shares a concurrency key with others, of which one runs at a time.
    async fn start_in_line(&mut self) -> RunId {
        let id = self.fresh_run();
        let mut accepted = Accepted::plain("w".into(), self.irs[1].hash, Payload::null());
        accepted.concurrency = Some(Concurrency { key: "only one:line".into(), limit: 1 });
        self.store.accept(NewRun { id, accepted }).await.expect("accepted");
        id
    }

    async fn claim(&self, max: usize) -> Vec<Task> {
        let lease = Some(Duration::from_secs(30));
        let want = Want { worker: "w".into(), queues: ["work".into()].into(), max, lease };
        self.store.step(Vec::new(), &want).await.expect("claimed").1
    }

    async fn settle(&self, task: &Task, outcome: TaskOutcome) -> Settled {
        let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
        let want = Want::nothing("w".into());
        self.store.step(vec![Settlement { claim, outcome }], &want).await.expect("settled").0[0]
    }

    async fn succeed(&self, task: &Task) -> Settled {
        self.settle(task, TaskOutcome::Succeeded(Payload::null())).await
    }

    /// Makes the task's node start three children, of which `concurrency` run at once.
    async fn wait_for_children(&mut self, task: &Task, concurrency: u32) -> Vec<RunId> {
        self.wait_for_many(task, 3, concurrency).await
    }

    async fn wait_for_many(&mut self, task: &Task, count: usize, concurrency: u32) -> Vec<RunId> {
        let children: Vec<RunId> = (0..count).map(|_| self.fresh_run()).collect();
        let plan = ChildrenPlan {
            workflow: "child".into(),
            definition: self.irs[1].hash,
            children: children.iter().map(|run| ChildSpec::plain(*run, Payload::null())).collect(),
            concurrency,
            stop_on_failure: true,
            timeout_at: None,
        };
        self.settle(task, TaskOutcome::Waiting(WaitFor::Children(Box::new(plan)))).await;
        children
    }

    fn cli(&self, command: &[&str]) -> String {
        let client = redis::Client::open(self.server.url()).expect("an address");
        let mut connection = client.get_connection().expect("Redis answers");
        let mut words = command.iter();
        let mut call = redis::cmd(words.next().expect("a command"));
        call.arg(words.copied().collect::<Vec<_>>());
        format!("{:?}", call.query::<redis::Value>(&mut connection).expect("answered"))
    }

    /// Makes a recovery pass as the engine does.
    async fn recover(&self) -> usize {
        let unfinished = self.archive.unfinished().await.expect("answered");
        let mut runs = Vec::new();
        for id in self.store.compare(&unfinished).await.expect("answered") {
            let events = self.archive.events(id, 0, 10_000).await.expect("read");
            let find = |hash| self.irs.iter().find(|ir| ir.hash == hash).cloned();
            runs.push(Run::replay(&events, &find).expect("a whole history"));
        }
        let lacking = runs.len();
        self.store.restore(runs).await.expect("restored");
        lacking
    }

    /// Executes tasks until none is left, and asserts that every run ended as it should.
    async fn finish(&self, runs: &[RunId]) {
        loop {
            let (fired, _) = self.store.fire_timers().await.expect("timers fire");
            let tasks = self.claim(50).await;
            if tasks.is_empty() && fired == 0 {
                break;
            }
            for task in &tasks {
                self.succeed(task).await;
            }
        }
        self.store.archived().await.expect("archived");
        for run in runs {
            let record = self.archive.run(*run).await.expect("answered").expect("archived");
            assert_eq!(record.status, RunStatus::Succeeded, "{run}");
            let events = self.archive.events(*run, 0, 10_000).await.expect("read");
            assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq), "gapless");
            let ends = events.iter().filter(|event| matches!(event.kind, EventKind::RunEnded { .. }));
            assert_eq!(ends.count(), 1);
        }
        assert_eq!(self.store.size().await.expect("answered").runs, 0);
    }
}

#[tokio::test]
async fn a_flushed_redis_is_filled_again() {
    let mut scene = Scene::new().await;
    let mut runs = Vec::new();
    for _ in 0..300 {
        runs.push(scene.start().await);
    }
    let tasks = scene.claim(150).await;
    for task in &tasks[..100] {
        scene.succeed(task).await;
    }
    scene.store.archived().await.expect("archived");
    let more = scene.claim(20).await;
    scene.cli(&["FLUSHALL"]);
    assert_eq!(scene.recover().await, 300);
    assert_eq!(scene.recover().await, 0, "nothing is wrong any more");
    assert_eq!(scene.succeed(&more[0]).await, Settled::Stale, "who held it was told nothing");
    scene.finish(&runs).await;
}

#[tokio::test]
async fn what_redis_forgot_is_done_again() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    let first = scene.claim(1).await.remove(0);
    // Redis will go back to this state, as if it had lost its last second.
    scene.cli(&["SAVE"]);
    assert_eq!(scene.succeed(&first).await, Settled::Applied);
    let second = scene.claim(1).await.remove(0);
    scene.succeed(&second).await;
    scene.store.archived().await.expect("archived");
    go_back(&mut scene).await;
    // Before a recovery pass, a worker continues with an outdated state.
    assert_eq!(scene.succeed(&first).await, Settled::Applied);
    scene.store.archived().await.expect("the contradiction is found and the run is rebuilt");
    let state = scene.store.snapshot(run).await.expect("answered").expect("in flight");
    assert_eq!(state.seq, 5, "rebuilt from what the archive has: {state:?}");
    assert_eq!(scene.recover().await, 0);
    scene.finish(&[run]).await;
}

/// After going back, Redis continues until it is ahead of the archive. None of these events are archived: those after
/// the archive's last one have the right numbers, but follow from other events.
#[tokio::test]
async fn what_follows_a_contradiction_is_not_archived() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    let first = scene.claim(1).await.remove(0);
    scene.cli(&["SAVE"]);
    assert_eq!(scene.succeed(&first).await, Settled::Applied);
    scene.claim(1).await;
    scene.store.archived().await.expect("archived");
    go_back(&mut scene).await;
    let other = TaskOutcome::Succeeded(Payload::from_value(&true.into()));
    assert_eq!(scene.settle(&first, other).await, Settled::Applied);
    let second = scene.claim(1).await.remove(0);
    assert_eq!(scene.succeed(&second).await, Settled::Applied);
    scene.store.archived().await.expect("the contradiction is found and the run is rebuilt");
    scene.store.archived().await.expect("and what that came to is archived");
    let events = scene.archive.events(run, 0, 10_000).await.expect("read");
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.name()).collect();
    let kept = ["run_accepted", "node_started", "node_succeeded", "node_started", "node_released"];
    assert_eq!(kinds[..], kept, "the claim is void after the run was rebuilt");
    assert_eq!(scene.recover().await, 0);
    scene.finish(&[run]).await;
}

#[tokio::test]
async fn a_run_that_is_behind_is_rebuilt() {
    let mut scene = Scene::new().await;
    let (behind, same) = (scene.start().await, scene.start().await);
    scene.store.archived().await.expect("archived");
    scene.cli(&["SAVE"]);
    let task = scene.claim(1).await.remove(0);
    scene.succeed(&task).await;
    scene.store.archived().await.expect("archived");
    go_back(&mut scene).await;
    assert_eq!(scene.recover().await, 1, "only the one that went on");
    assert_eq!(&*scene.claim(9).await.iter().map(|task| &*task.node).collect::<Vec<_>>().join(" "), "n0 n1");
    scene.cli(&["FLUSHALL"]);
    scene.recover().await;
    scene.finish(&[behind, same]).await;
}

/// Children and their parent changed together, and are rebuilt together.
#[tokio::test]
async fn families_come_back_whole() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let children = scene.wait_for_children(&task, 2).await;
    let first = scene.claim(1).await.remove(0);
    scene.succeed(&first).await;
    scene.store.archived().await.expect("archived");
    scene.cli(&["FLUSHALL"]);
    assert_eq!(scene.recover().await, 3, "the parent, and two children");
    let all: Vec<RunId> = children.into_iter().chain([run]).collect();
    scene.finish(&all).await;
}

/// Many children are started in batches. The next batch starts although Redis has lost its timer.
#[tokio::test]
async fn a_long_list_comes_back_whole() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let children = scene.wait_for_many(&task, 1_300, u32::MAX).await;
    scene.store.fire_timers().await.expect("timers fire");
    for task in scene.claim(100).await {
        scene.succeed(&task).await;
    }
    scene.store.archived().await.expect("archived");
    scene.cli(&["FLUSHALL"]);
    assert_eq!(scene.recover().await, 901, "the parent, and those of its 1,000 children that have not ended");
    let all: Vec<RunId> = children.into_iter().chain([run]).collect();
    scene.finish(&all).await;
    assert_eq!(scene.cli(&["KEYS", "children:*"]), "array([])");
}

/// Children beyond the first 200 are cancelled by commands of their own, after the one that stopped their parent.
#[tokio::test]
async fn children_are_cancelled_although_redis_forgot_that_they_were_to_be() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let children = scene.wait_for_many(&task, 450, u32::MAX).await;
    let cancel = Command::Cancel { by: "me".into(), reason: "".into(), compensate: false, now: false };
    let operation = Operation { id: OperationId::drawn(1), command: Hash::of(b"cancel") };
    scene.store.command(run, operation, cancel).await.expect("cancelled");
    scene.store.archived().await.expect("archived");
    assert_eq!(scene.cli(&["SCARD", "wf.cancels"]), "int(250)");
    scene.cli(&["FLUSHALL"]);
    assert_eq!(scene.recover().await, 251, "the parent, and those that were not told to stop");
    scene.store.archived().await.expect("archived");
    for run in children.iter().chain([&run]) {
        let record = scene.archive.run(*run).await.expect("answered").expect("archived");
        assert_eq!(record.status, RunStatus::Cancelled, "{run}");
    }
    assert_eq!(scene.store.size().await.expect("answered").runs, 0);
}

/// Releases up to 0.1 kept all children of a node in one field.
#[tokio::test]
async fn children_are_read_as_earlier_releases_kept_them() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let children = scene.wait_for_children(&task, 2).await;
    let specs: Vec<String> =
        children.iter().map(|child| format!(r#"{{"run":"{child}","input":{{"json":null}}}}"#)).collect();
    let wait = format!(
        r#"{{"children":{{"plan":{{"workflow":"child","definition":"{}","children":[{}],"concurrency":2,
        "stop_on_failure":true}},"results":[{{"end":null}},{{"end":null}},{{"end":null}}],
        "started":2,"ended":0,"stopped":false}}}}"#,
        scene.irs[1].hash,
        specs.join(",")
    );
    scene.cli(&["DEL", &scene.store.keys().children(run, "n0")]);
    scene.cli(&["HSET", &scene.store.keys().context(run), "n0:wait", &wait]);
    let all: Vec<RunId> = children.into_iter().chain([run]).collect();
    scene.finish(&all).await;
}

/// A process that dies after its commit leaves tokens on a list; another process queues them.
#[tokio::test]
async fn tokens_that_a_process_left_behind_are_queued() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    let generation =
        scene.cli(&["HGET", &scene.store.keys().run(run), "gen"]).replace(|c: char| !c.is_ascii_digit(), "");
    scene.cli(&["DEL", "wf.tasks.work", "wf.queued"]);
    let member = format!("{run} {generation} 0000000000000001");
    scene.cli(&["RPUSH", &scene.store.keys().ready_list(&member), "wf.tasks.work\nn0\n\n0\n1700000000000\n"]);
    scene.cli(&["ZADD", "wf.ready", "1", &member]);
    scene.store.reclaim().await.expect("answered");
    scene.finish(&[run]).await;
    assert_eq!(scene.cli(&["EXISTS", "wf.ready"]), "int(0)");
}

/// A decision about a large run takes longer than its steps: they wait, or the decision would never be written.
#[tokio::test]
async fn a_large_run_is_cancelled_while_it_is_busy() {
    let mut scene = Scene::new().await;
    let mut sketch = Sketch::new().node("root", &[]);
    for i in 0..5_000 {
        sketch = sketch.node(&format!("n{i}"), &["root"]);
    }
    scene.irs[0] = sketch.ir();
    scene.store.learn(scene.irs[0].clone()).await.expect("learnt");
    let run = scene.start().await;
    let root = scene.claim(1).await.remove(0);
    scene.succeed(&root).await;
    let other = RedisStore::open(RedisSettings::new(scene.server.url()), scene.archive.clone()).await;
    let other = other.expect("Redis answers");
    let busy = tokio::spawn(async move {
        let want = Want { worker: "x".into(), queues: ["work".into()].into(), max: 5, lease: None };
        let (mut settlements, mut settled) = (Vec::new(), 0);
        loop {
            let (answers, tasks) = other.step(settlements, &want).await.expect("answered");
            settled += answers.iter().filter(|answer| **answer == Settled::Applied).count();
            if tasks.is_empty() {
                return settled;
            }
            let claim = |task: Task| ClaimRef { run: task.run, node: task.node, claim: task.claim };
            let outcome = TaskOutcome::Succeeded(Payload::null());
            settlements = tasks
                .into_iter()
                .map(|task| Settlement { claim: claim(task), outcome: outcome.clone() })
                .collect();
        }
    });
    let cancel = Command::Cancel { by: "me".into(), reason: "".into(), compensate: false, now: false };
    let operation = Operation { id: OperationId::drawn(1), command: Hash::of(b"cancel") };
    scene.store.command(run, operation, cancel).await.expect("cancelled");
    assert!(busy.await.expect("no panic") < 5_000, "it was cancelled before all of it was done");
    scene.store.archived().await.expect("archived");
    let record = scene.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(record.status, RunStatus::Cancelled);
}

/// A parent is briefly not in Redis while it is rebuilt. It still learns of a child that ends meanwhile.
#[tokio::test]
async fn a_parent_hears_of_a_child_that_ended_while_it_was_rebuilt() {
    let mut scene = Scene::new().await;
    let parent = scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let children = scene.wait_for_children(&task, 1).await;
    let child = scene.claim(1).await.remove(0);
    scene.store.archived().await.expect("archived");
    scene.cli(&[
        "DEL",
        &scene.store.keys().run(parent),
        &format!("dag:{parent}"),
        &format!("context:{parent}"),
    ]);
    assert_eq!(scene.succeed(&child).await, Settled::Applied);
    assert_eq!(scene.recover().await, 1, "the parent");
    assert!(scene.claim(1).await.is_empty(), "it does not know yet that its first child has ended");
    scene.store.archived().await.expect("archived");
    assert_eq!(scene.recover().await, 0, "it is told");
    scene.finish(&[children[0], children[1], children[2], parent]).await;
}

/// After Redis went back, a parent can know of an end that the archive does not have. The child ends again without
/// telling it, and then the parent is rebuilt.
#[tokio::test]
async fn a_parent_hears_of_a_child_that_ended_twice() {
    let mut scene = Scene::new().await;
    let parent = scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let children = scene.wait_for_children(&task, 3).await;
    let child = scene.claim(1).await.remove(0);
    scene.store.archived().await.expect("archived");
    let hashes = |run: RunId| ["run", "dag", "context"].map(|hash| format!("{hash}:{run}"));
    for hash in &hashes(child.run) {
        scene.cli(&["COPY", hash, &format!("{hash}:before")]);
    }
    assert_eq!(scene.succeed(&child).await, Settled::Applied);
    scene.cli(&["DEL", "wf.outbox"]);
    for hash in &hashes(child.run) {
        scene.cli(&["RENAME", &format!("{hash}:before"), hash]);
    }
    assert_eq!(scene.succeed(&child).await, Settled::Applied);
    scene.store.archived().await.expect("the second end is archived");
    let kept = hashes(parent);
    scene.cli(&["DEL", &kept[0], &kept[1], &kept[2]]);
    assert_eq!(scene.recover().await, 1, "the parent");
    for other in scene.claim(2).await {
        assert_eq!(scene.succeed(&other).await, Settled::Applied);
    }
    scene.store.archived().await.expect("archived");
    assert_eq!(scene.recover().await, 0, "it is told");
    scene.finish(&[children[0], children[1], children[2], parent]).await;
}

/// The process that starts a run may have cached a graph that Redis has lost. Other processes need it too.
#[tokio::test]
async fn a_graph_that_redis_lost_is_there_again_with_the_next_run_on_it() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let children = scene.wait_for_children(&task, 1).await;
    let first = scene.claim(1).await.remove(0);
    let key = scene.store.keys().ir(scene.irs[1].hash);
    scene.cli(&["DEL", &key]);
    scene.succeed(&first).await;
    let other = RedisStore::open(RedisSettings::new(scene.server.url()), scene.archive.clone()).await;
    scene.store = other.expect("Redis answers");
    assert_eq!(scene.claim(1).await[0].run, children[1], "a process that has just started knows the graph");
}

/// Graphs stay while a run is on them, or has yet to start children on them.
#[tokio::test]
async fn graphs_that_no_run_is_on_leave_redis() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let children = scene.wait_for_children(&task, 1).await;
    let unused = Sketch::chain(7).ir();
    scene.store.learn(unused.clone()).await.expect("learnt");
    assert_eq!(scene.store.tidy(Duration::from_secs(3600)).await, Ok(0), "nothing is old enough");
    assert_eq!(scene.store.tidy(Duration::ZERO).await, Ok(1));
    scene.finish(&[children[0], children[1], children[2], run]).await;
    assert_eq!(scene.store.tidy(Duration::ZERO).await, Ok(2));
    assert_eq!(scene.cli(&["KEYS", "ir:*"]), "array([])");
    assert_eq!(scene.cli(&["ZCARD", "wf.graphs"]), "int(0)");
    let again = scene.start().await;
    scene.finish(&[again]).await;
}

/// A timer that was found due, but has been put off meanwhile, stays in the sorted set.
#[tokio::test]
async fn a_timer_that_was_put_off_is_not_lost() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let task = scene.claim(1).await.remove(0);
    let until = Timestamp::from_millis(32_503_680_000_000);
    scene.settle(&task, TaskOutcome::Waiting(WaitFor::Timer { until })).await;
    let timers = scene.store.keys().timers();
    let name = format!("{} 1 {}", task.run, task.node);
    let as_it_was = scene.cli(&["ZSCORE", &timers, &name]);
    scene.cli(&["ZADD", &timers, "XX", "5", &name]);
    let (fired, next) = scene.store.fire_timers().await.expect("answered");
    // The time is by the clock of this process, which differs slightly from that of Redis.
    assert!(fired == 0 && next.is_some_and(|next| next.as_millis() >= until.as_millis() - 1_000), "{next:?}");
    assert_eq!(scene.cli(&["ZSCORE", &timers, &name]), as_it_was);
}

/// A run that cannot be read does not hold up others.
#[tokio::test]
async fn a_damaged_run_does_not_stop_the_timers_of_others() {
    let mut scene = Scene::new().await;
    let runs = [scene.start().await, scene.start().await];
    let until = Timestamp::from_millis(1_000);
    for task in scene.claim(2).await {
        scene.settle(&task, TaskOutcome::Waiting(WaitFor::Timer { until })).await;
    }
    let damaged = scene.store.keys().run(runs[0]);
    scene.cli(&["HSET", &damaged, "definition", "no hash"]);
    assert!(scene.store.fire_timers().await.is_err(), "it is said");
    assert_eq!(scene.claim(2).await.iter().map(|task| task.run).collect::<Vec<_>>(), [runs[1]]);
}

/// Redis goes back to a state in which a run held a concurrency key that it has released since.
#[tokio::test]
async fn a_run_that_had_ended_does_not_hold_its_key() {
    let mut scene = Scene::new().await;
    let ended = scene.start_in_line().await;
    let task = scene.claim(1).await.remove(0);
    scene.store.archived().await.expect("archived");
    scene.cli(&["SAVE"]);
    scene.succeed(&task).await;
    scene.store.archived().await.expect("archived");
    go_back(&mut scene).await;
    let next = scene.start_in_line().await;
    assert_eq!(scene.claim(1).await.len(), 0, "the other one seems to be under way");
    assert_eq!(scene.recover().await, 0);
    scene.finish(&[ended, next]).await;
    assert_eq!(scene.cli(&["KEYS", "gate*"]), "array([])");
}

#[tokio::test]
async fn redis_away_is_said_promptly_and_passes() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    scene.server.stop();
    let away = scene.store.snapshot(run).await;
    assert!(
        matches!(&away, Err(StoreError::Unavailable(why)) if why.contains("does not answer")),
        "{away:?}"
    );
    let id = scene.fresh_run();
    let accepted = Accepted::plain("w".into(), scene.irs[0].hash, Payload::null());
    assert!(scene.store.accept(NewRun { id, accepted }).await.is_err());
    assert_eq!(scene.archive.run(id).await, Ok(None), "what is refused is not archived");
    scene.server.start_again();
    scene.until_there().await;
    scene.recover().await;
    scene.finish(&[run]).await;
}

#[tokio::test]
async fn who_waits_for_work_hears_of_it() {
    let mut scene = Scene::new().await;
    let want = Want { worker: "w".into(), queues: ["wo*".into()].into(), max: 1, lease: None };
    scene.start().await;
    scene.store.work_ready(&want).await;
    scene.claim(1).await;
    let id = scene.fresh_run();
    let accepted = Accepted::plain("w".into(), scene.irs[0].hash, Payload::null());
    let (_, accepted) =
        tokio::join!(scene.store.work_ready(&want), scene.store.accept(NewRun { id, accepted }));
    accepted.expect("accepted");
    assert_eq!(scene.claim(1).await.len(), 1);
}

impl Scene {
    async fn until_there(&self) {
        while self.store.size().await.is_err() {
            tokio::task::yield_now().await;
        }
    }
}

/// Redis comes back with the data of the last SAVE.
async fn go_back(scene: &mut Scene) {
    scene.server.crash();
    let folder = scene.server.folder().to_owned();
    std::fs::remove_dir_all(folder.join("appendonlydir")).expect("the newer file goes");
    scene.server.start_from_dump();
    scene.until_there().await;
}
