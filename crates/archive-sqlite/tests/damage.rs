//! Damage is noticed: a folder whose files were changed from outside has every acknowledged run, or says which run is
//! missing, or is refused. Everything that is whole in it can be salvaged into a new folder.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use switchyard_archive_sqlite::{DataFolder, Notice, Salvaged, SqliteArchive};
use switchyard_conformance::archive::fixtures::{
    History, acceptance, accepted_as, ended, node_started, node_succeeded, run_id,
};
use switchyard_core::run::{Accepted, EndStatus, Event, EventKind};
use switchyard_core::{CasRef, Hash, Payload, RunId};
use switchyard_store::{Cas, Definitions, Journal, Registry, RunIndex, StoreError};
use tempfile::TempDir;

const DB: &str = "switchyard.db";
const LOG: &str = "switchyard.db-wal";
const INDEX: &str = "switchyard.db-shm";
const PAGE: usize = 4_096;
const FRAME: usize = 24 + PAGE;

/// Runs in the database file, and runs that are only in its log.
const IN_FILE: u32 = 400;
const IN_LOG: u32 = 300;
/// Runs in a transaction.
const TOGETHER: u32 = 10;

/// A folder as `kill -9` leaves it, and the acknowledged events.
struct Killed {
    files: BTreeMap<String, Vec<u8>>,
    acknowledged: BTreeMap<RunId, Vec<Event>>,
}

impl Killed {
    async fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut acknowledged = BTreeMap::new();
        let archive = DataFolder::open(dir.path()).unwrap().archive().unwrap();
        write_runs(&archive, 0..IN_FILE, &mut acknowledged).await;
        drop(archive);
        let archive = DataFolder::open(dir.path()).unwrap().archive().unwrap();
        write_runs(&archive, IN_FILE..IN_FILE + IN_LOG, &mut acknowledged).await;
        // There is no writer now. The files are what another process would find if this one were killed.
        let files =
            [DB, LOG, INDEX, "id"].map(|name| (name.to_owned(), fs::read(dir.path().join(name)).unwrap()));
        Self { files: files.into(), acknowledged }
    }

    /// A folder with these files, some of them changed.
    fn with(&self, change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let mut files = self.files.clone();
        change(&mut files);
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    /// Counts the runs that cannot be read although the folder opened without an error: each error must name its run.
    async fn unread(&self, archive: &SqliteArchive, case: &str) -> usize {
        let mut unread = 0;
        for (run, events) in &self.acknowledged {
            match archive.events(*run, 0, usize::MAX).await {
                Ok(found) => assert_eq!(found, *events, "{case}: {run} is another one now"),
                Err(StoreError::Corrupt(_)) => unread += 1,
                Err(other) => panic!("{case}: {run}: {other}"),
            }
            match archive.run(*run).await {
                Ok(record) => assert!(record.is_some(), "{case}: {run} is lost without a word"),
                Err(StoreError::Corrupt(_)) => {}
                Err(other) => panic!("{case}: {run}: {other}"),
            }
        }
        unread
    }
}

async fn write_runs(
    archive: &SqliteArchive,
    numbers: std::ops::Range<u32>,
    acknowledged: &mut BTreeMap<RunId, Vec<Event>>,
) {
    let mut together = Vec::new();
    for n in numbers {
        let mut history = History::of(run_id(n));
        let input =
            Payload::from_value(&json!({ "text": "x".repeat(usize::try_from(n).unwrap() * 7 % 3_000) }));
        let mut kinds = vec![accepted_as(Accepted { input, ..acceptance() })];
        for node in ["fetch", "analyse", "save"] {
            kinds.extend([node_started(node), node_succeeded(node)]);
        }
        if n % 3 != 0 {
            kinds.push(ended(EndStatus::Succeeded));
        }
        let events = history.all(kinds);
        acknowledged.insert(history.run, events.clone());
        together.extend(events);
        if (n + 1) % TOGETHER == 0 {
            archive.append(std::mem::take(&mut together)).await.unwrap();
        }
    }
}

/// Changes bytes at random.
fn damage(files: &mut BTreeMap<String, Vec<u8>>, random: &mut StdRng) -> String {
    let name = if random.random_bool(0.5) { LOG } else { DB };
    let bytes = files.get_mut(name).unwrap();
    let at = random.random_range(0..bytes.len());
    let what = match random.random_range(0..4) {
        0 => {
            bytes[at] ^= 1 << random.random_range(0..8);
            format!("bit at {at}")
        }
        1 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        2 => {
            let until = bytes.len().min(at + random.random_range(1..4 * PAGE));
            bytes[at..until].fill(0);
            format!("zeros at {at}..{until}")
        }
        _ => {
            let until = bytes.len().min(at + random.random_range(1..64));
            bytes[at..until].iter_mut().for_each(|byte| *byte = random.random());
            format!("noise at {at}..{until}")
        }
    };
    format!("{name}: {what}")
}

#[tokio::test]
async fn damage_anywhere_is_refused_or_named_and_the_rest_is_salvaged() {
    let killed = Killed::make().await;
    let mut refused = 0;
    for seed in 0..100 {
        let mut case = String::new();
        let dir = killed.with(|files| case = damage(files, &mut StdRng::seed_from_u64(seed)));
        let case = format!("seed {seed}, {case}");
        // A separate statement: the folder is unlocked before it is salvaged.
        let opened = DataFolder::open(dir.path()).unwrap().archive();
        match opened {
            Ok(archive) => {
                let unread = killed.unread(&archive, &case).await;
                assert!(unread <= 30, "{case}: {unread} runs");
            }
            Err(StoreError::Corrupt(_)) => {
                refused += 1;
                salvages_what_is_whole(&killed, dir.path(), &case).await;
            }
            Err(other) => panic!("{case}: {other}"),
        }
    }
    assert!(refused > 50, "{refused} of 100 folders were refused");
}

async fn salvages_what_is_whole(killed: &Killed, damaged: &Path, case: &str) {
    let before = contents(damaged);
    let new = tempfile::tempdir().unwrap();
    let to = new.path().join("new");
    let Salvaged { histories, .. } = DataFolder::salvage(damaged, &to, Notice::default()).await.unwrap();
    assert_eq!(contents(damaged), before, "{case}: the damaged folder was changed");
    let archive = DataFolder::open(&to).unwrap().archive().unwrap();
    let (mut whole, mut short, mut absent) = (0, HashSet::new(), HashSet::new());
    for (run, events) in &killed.acknowledged {
        let found = archive.events(*run, 0, usize::MAX).await.unwrap();
        assert!(events.starts_with(&found), "{case}: {run} is another one now");
        match found.len() {
            0 => drop(absent.insert(run.to_string())),
            all if all == events.len() => whole += 1,
            _ => drop(short.insert(run.to_string())),
        }
    }
    let ids = |faults: &[switchyard_archive_sqlite::RunFault]| -> HashSet<String> {
        faults.iter().map(|fault| fault.run.clone()).collect()
    };
    assert_eq!(ids(&histories.cut), short, "{case}: what was cut is told");
    assert_eq!(histories.whole, whole, "{case}: what is whole was kept");
    // A run without any trace cannot be named; a cut database has lost many of them.
    if !case.contains("cut") {
        let left_out = ids(&histories.left_out);
        assert!(left_out.is_subset(&absent), "{case}: {left_out:?} left out, {absent:?} absent");
        assert!(killed.acknowledged.len() - whole <= 60, "{case}: only {whole} were kept: {histories:?}");
    }
}

fn contents(folder: &Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .filter(|entry| entry.path().is_file())
        .map(|e| (e.file_name(), fs::read(e.path()).unwrap()))
        .collect()
}

/// A notice that records every message.
fn listener() -> (Notice, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    (Notice::new(move |text| ear.lock().push(text.to_owned())), heard)
}

#[tokio::test]
async fn after_a_kill_with_nothing_wrong_everything_is_there_and_nothing_is_said() {
    let killed = Killed::make().await;
    let dir = killed.with(|_| {});
    let (notice, heard) = listener();
    let archive = DataFolder::open_telling(dir.path(), notice).unwrap().archive().unwrap();
    assert_eq!(killed.unread(&archive, "no damage").await, 0);
    assert!(heard.lock().is_empty(), "{:?}", heard.lock());
}

#[tokio::test]
async fn a_log_that_is_bad_in_its_middle_is_refused_with_the_runs_that_it_would_cost() {
    let killed = Killed::make().await;
    let dir = killed.with(|files| files.get_mut(LOG).unwrap()[32 + 24 + 100] ^= 1);
    let refused = DataFolder::open(dir.path()).unwrap().archive().unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains("switchyard.db-wal: frame 1 of "), "{text}");
    assert!(text.ends_with(&format!("what cannot be read has events of {IN_LOG} runs")), "{text}");
    let looking = DataFolder::peek(dir.path()).unwrap_err();
    assert_eq!(looking, refused, "a reader is told as well");
    assert_eq!(contents(dir.path())[std::ffi::OsStr::new(LOG)], fs::read(dir.path().join(LOG)).unwrap());
}

#[tokio::test]
async fn after_a_power_cut_a_torn_log_is_read_up_to_its_last_transaction() {
    let killed = Killed::make().await;
    // The index was lost with the memory, and the last frame is half written.
    let dir = killed.with(|files| {
        files.remove(INDEX);
        let log = files.get_mut(LOG).unwrap();
        log.truncate(log.len() - FRAME / 2);
    });
    let archive = DataFolder::open(dir.path()).unwrap().archive().unwrap();
    let kept = killed.acknowledged.len() - TOGETHER as usize;
    for (n, (run, events)) in killed.acknowledged.iter().enumerate() {
        let expected = if n < kept { &events[..] } else { &[] };
        assert_eq!(archive.events(*run, 0, 100).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_refused_while_its_index_remembers() {
    let killed = Killed::make().await;
    for keep in [0, 1, 33, 32 + 10 * FRAME, killed.files[LOG].len() - 1] {
        let dir = killed.with(|files| files.get_mut(LOG).unwrap().truncate(keep));
        let refused = DataFolder::open(dir.path()).unwrap().archive().unwrap_err().to_string();
        assert!(refused.contains("its index knows of"), "{keep} bytes: {refused}");
    }
    let dir = killed.with(|files| drop(files.remove(DB)));
    let refused = DataFolder::open(dir.path()).unwrap().archive().unwrap_err().to_string();
    assert!(refused.contains("the file is gone, and its log is there"), "{refused}");
}

#[tokio::test]
async fn a_database_that_was_changed_after_a_clean_end_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let archive = DataFolder::open(dir.path()).unwrap().archive().unwrap();
    assert!(!dir.path().join("switchyard.db.clean").exists(), "not while it is open");
    write_runs(&archive, 0..100, &mut BTreeMap::new()).await;
    drop(archive);
    assert!(dir.path().join("switchyard.db.clean").exists());
    DataFolder::open(dir.path()).unwrap().archive().unwrap();

    let mut bytes = fs::read(dir.path().join(DB)).unwrap();
    let middle = bytes.len() / PAGE / 2 * PAGE;
    bytes[middle..middle + PAGE].fill(0xa5);
    fs::write(dir.path().join(DB), bytes).unwrap();
    let refused = DataFolder::open(dir.path()).unwrap().archive().unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
}

#[tokio::test]
async fn what_follows_from_no_event_is_salvaged_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(dir.path()).unwrap();
    let (archive, cas) = (folder.archive().unwrap(), folder.cas());
    let text: Arc<str> = "{\"name\":\"enrich\"}".into();
    let hash = Hash::of(text.as_bytes());
    archive.put_definition(hash, text.clone()).await.unwrap();
    let workflow = archive.register_workflow("enrich", hash, run_at()).await.unwrap();
    let kept = cas.put(vec![b'1'; 9_000].into()).await.unwrap();
    let lost = cas.put(vec![b'2'; 9_000].into()).await.unwrap();
    let mut history = History::of(run_id(0));
    let input = |reference: CasRef| accepted_as(Accepted { input: Payload::Cas(reference), ..acceptance() });
    history.put(&archive, [input(kept)]).await;
    let mut other = History::of(run_id(1));
    other.put(&archive, [input(lost), node_started("a")]).await;
    drop((folder, archive, cas));
    let hex = lost.hash.hex();
    fs::write(dir.path().join("cas").join(&hex[..2]).join(&hex), "something else").unwrap();

    let to = dir.path().join("new");
    let salvaged = DataFolder::salvage(dir.path(), &to, Notice::default()).await.unwrap();
    assert_eq!((salvaged.histories.whole, salvaged.payloads), (2, 1));
    assert!(salvaged.tables.is_empty() && !salvaged.is_whole(), "{salvaged:?}");
    assert_eq!(salvaged.missing_payloads[&lost.to_string()], [other.run.to_string()]);
    let folder = DataFolder::open(&to).unwrap();
    let archive = folder.archive().unwrap();
    assert_eq!(archive.definition(hash).await.unwrap(), Some(text));
    assert_eq!(archive.workflow("enrich", None).await.unwrap(), Some(workflow));
    assert_eq!(folder.cas().get(kept).await.unwrap().len(), 9_000);

    let refused = DataFolder::salvage(dir.path(), &to, Notice::default()).await.unwrap_err().to_string();
    assert!(refused.ends_with("is not a new or empty folder"), "{refused}");
}

fn run_at() -> switchyard_core::Timestamp {
    switchyard_core::Timestamp::from_millis(1_700_000_000_000)
}

/// A history with a gap: an unfinished one is cut, an ended one is left out, and the events after the gap are kept as
/// text.
#[tokio::test]
async fn a_history_with_a_hole_is_cut_or_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let archive = DataFolder::open(dir.path()).unwrap().archive().unwrap();
    let succeeded = |node: &str, text: &str| EventKind::NodeSucceeded {
        node: node.into(),
        output: Payload::from_value(&json!(text)),
        cached: false,
    };
    let first = || accepted_as(acceptance());
    let (mut going_on, mut over) = (History::of(run_id(0)), History::of(run_id(1)));
    going_on.put(&archive, [first(), node_started("a"), succeeded("a", "HOLE"), node_started("b")]).await;
    over.put(&archive, [first(), succeeded("a", "HOLE"), ended(EndStatus::Succeeded)]).await;
    drop(archive);
    let mut bytes = fs::read(dir.path().join(DB)).unwrap();
    for at in 0..bytes.len() - 4 {
        if &bytes[at..at + 4] == b"HOLE" {
            bytes[at] = b'P';
        }
    }
    fs::write(dir.path().join(DB), bytes).unwrap();

    let surveyed = DataFolder::survey(dir.path()).unwrap();
    let to = dir.path().join("new");
    let salvaged = DataFolder::salvage(dir.path(), &to, Notice::default()).await.unwrap();
    for found in [surveyed, salvaged.histories] {
        assert_eq!((found.whole, found.cut.len(), found.left_out.len()), (0, 1, 1), "{found:?}");
        assert_eq!((&*found.cut[0].run, found.cut[0].events), (&*going_on.run.to_string(), 2));
        assert_eq!(found.cut[0].what, "event 3 is missing or damaged");
        assert_eq!(found.left_out[0].run, over.run.to_string());
    }
    let archive = DataFolder::open(&to).unwrap().archive().unwrap();
    assert_eq!(archive.events(going_on.run, 0, 10).await.unwrap().len(), 2);
    assert_eq!(archive.run(over.run).await.unwrap(), None);
    let left = fs::read_to_string(to.join(format!("left-out/{}.jsonl", over.run))).unwrap();
    assert_eq!(left.lines().count(), 2, "{left}");
}
