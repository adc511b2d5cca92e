//! Tests that malformed entries of the outbox become dead letters, that all others are archived, and that no run has a
//! gap.

use std::collections::HashMap;
use std::sync::Arc;

use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::{NewRun, Want};
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, ClaimRef, Progress, RunStatus, Settled, Settlement, Task, TaskOutcome};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{Archive, DeadKind, DeadLetter, HotStore};
use switchyard_store_redis::{RedisSettings, RedisStore, Shipped};
use switchyard_test_servers::redis;
use tempfile::TempDir;

struct Scene {
    store: RedisStore,
    archive: Arc<dyn Archive>,
    settings: RedisSettings,
    serial: u64,
    /// Held tasks, by run.
    held: HashMap<RunId, Task>,
    _folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = DataFolder::open(folder.path()).and_then(|data| data.archive()).expect("an archive");
        let archive: Arc<dyn Archive> = Arc::new(archive);
        let prefix = redis::fresh_prefix();
        let settings = RedisSettings { prefix, ..RedisSettings::new(redis::shared().url()) };
        let store = RedisStore::open(settings.clone(), archive.clone()).await.expect("Redis answers");
        store.learn(Sketch::chain(2).ir()).await.expect("learnt");
        Self { store, archive, settings, serial: 0, held: HashMap::new(), _folder: folder }
    }

    /// Starts a run and claims its first step. Two events of the run are archived.
    async fn started(&mut self) -> RunId {
        self.serial += 1;
        let id = RunId::new(Timestamp::from_millis(1_700_000_000_000), self.serial, 0);
        let accepted = Accepted::plain("w".into(), Sketch::chain(2).ir().hash, Payload::null());
        self.store.accept(NewRun { id, accepted }).await.expect("accepted");
        let task = self.store.step(Vec::new(), &want(1)).await.expect("claimed").1.remove(0);
        assert_eq!(task.run, id);
        self.held.insert(id, task);
        self.store.ship().await.expect("shipped");
        id
    }

    /// Appends an event of a run to the outbox.
    async fn happen(&self, run: RunId) {
        let claim = claim(&self.held[&run]);
        let said = Progress::Checkpoint(Payload::null());
        assert_eq!(self.store.progress(&claim, said).await.expect("answered"), Settled::Applied);
    }

    fn cli<T: ::redis::FromRedisValue>(&self, command: &::redis::Cmd) -> T {
        let client = ::redis::Client::open(self.settings.url.as_str()).expect("an address");
        let mut connection = client.get_connection().expect("Redis answers");
        command.query(&mut connection).expect("answered")
    }

    /// `XADD wf.outbox * …`
    fn add(&self, fields: &[(&str, &[u8])]) {
        let mut add = ::redis::cmd("XADD");
        add.arg(self.store.keys().outbox()).arg("*");
        for (name, value) in fields {
            add.arg(name).arg(value);
        }
        self.cli::<String>(&add);
    }

    fn outbox(&self) -> usize {
        self.cli(::redis::cmd("XLEN").arg(self.store.keys().outbox()))
    }

    async fn letters(&self) -> Vec<DeadLetter> {
        let mut letters = Vec::new();
        for listed in self.archive.dead_letters(100).await.expect("answered") {
            letters.extend(self.archive.dead_letter(&listed.id).await.expect("answered"));
        }
        assert!(letters.iter().all(|letter| letter.kind == DeadKind::OutboxEntry), "{letters:?}");
        letters
    }

    async fn last_seq(&self, run: RunId) -> u64 {
        self.archive.run(run).await.expect("answered").map_or(0, |record| record.last_seq)
    }

    /// Ships until the outbox is empty: a rebuilt run appends new events, because its claims are void.
    async fn ship(&self) {
        while self.outbox() > 0 {
            assert!(matches!(self.store.ship().await.expect("shipped"), Shipped::Events(_)));
        }
    }

    async fn kinds(&self, run: RunId) -> Vec<&'static str> {
        let events = self.archive.events(run, 0, 1_000).await.expect("read");
        events.iter().map(|event| event.kind.name()).collect()
    }

    /// Executes every run to its end.
    async fn finish(&mut self, runs: &[RunId]) {
        let mut tasks: Vec<Task> = self.held.drain().map(|(_, task)| task).collect();
        while !tasks.is_empty() {
            let settle = |task: &Task| Settlement {
                claim: claim(task),
                outcome: TaskOutcome::Succeeded(Payload::null()),
            };
            let settlements = tasks.iter().map(settle).collect();
            tasks = self.store.step(settlements, &want(10)).await.expect("stepped").1;
        }
        self.store.archived().await.expect("archived");
        for run in runs {
            let record = self.archive.run(*run).await.expect("answered").expect("archived");
            assert_eq!(record.status, RunStatus::Succeeded, "{run}");
            let events = self.archive.events(*run, 0, 1_000).await.expect("read");
            assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq), "gapless");
        }
    }
}

fn want(max: usize) -> Want {
    Want { worker: "w".into(), queues: ["work".into()].into(), max, lease: None }
}

fn claim(task: &Task) -> ClaimRef {
    ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim }
}

const NO_TEXT: &[u8] = b"\xff\xfe\x00";

#[tokio::test]
async fn garbage_is_buried_and_the_rest_is_archived() {
    let mut scene = Scene::new().await;
    let (before, after) = (scene.started().await, scene.started().await);
    scene.happen(before).await;
    scene.add(&[("hello", b"world")]);
    scene.add(&[("no text", NO_TEXT), ("\u{0}", b"")]);
    scene.add(&[("more", b"1"), ("apart", b"1")]);
    scene.happen(after).await;
    scene.add(&[("more", b"1"), ("it has no", b"end")]);
    scene.ship().await;
    let letters = scene.letters().await;
    let reasons: Vec<&str> = letters.iter().map(|letter| &*letter.reason).collect();
    assert_eq!(letters.len(), 3, "{reasons:?}");
    let hello = letters.iter().find(|letter| letter.excerpt.as_deref() == Some("hello world"));
    assert!(hello.is_some_and(|letter| letter.reason.contains("`hello` is not a run")), "{letters:?}");
    assert_eq!((scene.last_seq(before).await, scene.last_seq(after).await), (3, 3));
    scene.ship().await;
    assert_eq!(scene.letters().await.len(), 3, "once each");
    scene.finish(&[before, after]).await;
}

/// A run lacks an event that cannot be read, so it goes back to its archived state.
#[tokio::test]
async fn a_run_of_which_something_is_lost_is_rebuilt() {
    let mut scene = Scene::new().await;
    let (broken, along, other) = (scene.started().await, scene.started().await, scene.started().await);
    let life = |run: RunId| -> String {
        scene.cli(::redis::cmd("HGET").arg(scene.store.keys().run(run)).arg("life"))
    };
    let garbled = format!("{broken} 4 1700000000000 {}", life(broken));
    let whole = format!("{along} 3 1700000000000 {}", life(along));
    scene.happen(broken).await;
    scene.add(&[("apart", b"1"), (&garbled, b"{\"run_paused\""), (&whole, br#"{"run_paused":{"by":"x"}}"#)]);
    scene.happen(broken).await;
    scene.happen(other).await;
    scene.ship().await;
    let letters = scene.letters().await;
    assert_eq!(letters.iter().map(|letter| letter.run_id).collect::<Vec<_>>(), [Some(broken)]);
    assert!(letters[0].reason.contains(&format!("event 4 of {broken}")), "{}", letters[0].reason);
    let archived = ["run_accepted", "node_started", "node_checkpointed", "node_released"];
    assert_eq!(scene.kinds(broken).await, archived, "what came before is archived, what came after is not");
    assert_eq!((scene.last_seq(along).await, scene.last_seq(other).await), (3, 3));
    scene.held.remove(&along);
    scene.finish(&[broken, other]).await;
}

#[tokio::test]
async fn a_gap_breaks_its_run_alone() {
    let mut scene = Scene::new().await;
    let (broken, other) = (scene.started().await, scene.started().await);
    scene.happen(broken).await;
    let outbox = scene.store.keys().outbox();
    let entries: Vec<(String, Vec<(String, String)>)> =
        scene.cli(::redis::cmd("XRANGE").arg(&outbox).arg("-").arg("+"));
    scene.cli::<u64>(::redis::cmd("XDEL").arg(&outbox).arg(&entries[0].0));
    scene.happen(broken).await;
    scene.happen(other).await;
    scene.happen(broken).await;
    scene.ship().await;
    let letters = scene.letters().await;
    assert_eq!(letters.len(), 1, "one for the gap, none for what stood on it: {letters:?}");
    assert_eq!(letters[0].run_id, Some(broken));
    assert!(letters[0].reason.contains("event 4"), "{}", letters[0].reason);
    assert_eq!(scene.kinds(broken).await, ["run_accepted", "node_started", "node_released"]);
    assert_eq!(scene.last_seq(other).await, 3);
    scene.finish(&[broken, other]).await;
}

#[tokio::test]
async fn a_run_that_the_archive_does_not_know_holds_up_no_other() {
    let mut scene = Scene::new().await;
    let other = scene.started().await;
    let unknown = RunId::new(Timestamp::from_millis(9), 9, 0);
    let paused = format!("{unknown} 2 1700000000000 1");
    scene.add(&[(&paused, br#"{"run_paused":{"by":"x"}}"#)]);
    scene.happen(other).await;
    scene.ship().await;
    assert_eq!(scene.letters().await[0].run_id, Some(unknown));
    assert_eq!(scene.last_seq(other).await, 3);
    scene.finish(&[other]).await;
}

#[tokio::test]
async fn an_entry_of_any_size_is_kept_as_its_beginning() {
    let mut scene = Scene::new().await;
    let other = scene.started().await;
    let large = vec![b'x'; 20 << 20];
    scene.add(&[("large", &large)]);
    scene.happen(other).await;
    scene.ship().await;
    let letters = scene.letters().await;
    let excerpt = letters[0].excerpt.as_deref().expect("an excerpt");
    assert!(excerpt.starts_with("large xxx") && excerpt.len() < 1_100, "{} bytes", excerpt.len());
    assert!(excerpt.contains("bytes)"), "it says how much there was");
    assert_eq!(scene.last_seq(other).await, 3);
}
