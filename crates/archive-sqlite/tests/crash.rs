//! After kill -9 at any moment, every acknowledged append is stored, and no append is stored in part.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use switchyard_archive_sqlite::DataFolder;
use switchyard_conformance::archive::fixtures::{History, accepted, node_started, node_succeeded, run_id};
use switchyard_core::RunId;
use switchyard_store::{Journal, RunIndex, StoreError, Unfinished};

const LANES: u32 = 20;

/// Events per append: the first append has the acceptance, the others a started and a succeeded step.
const STEP: u64 = 2;

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    // Early and late, before and after the first checkpoints.
    for acks in [1, 60, 15_000] {
        let dir = tempfile::tempdir().unwrap();
        let acknowledged = write_and_kill(dir.path(), acks);
        let archive = DataFolder::open(dir.path()).unwrap().archive().unwrap();
        for (run, seq) in &acknowledged {
            let row = archive.run(*run).await.unwrap().expect("an accepted run is there");
            assert!(
                row.last_seq >= *seq,
                "{run}: event {seq} was acknowledged, {} is the last",
                row.last_seq
            );
        }
        let unfinished = archive.unfinished().await.unwrap();
        assert!(unfinished.len() >= acknowledged.len());
        for Unfinished { run, .. } in unfinished {
            let events = archive.events(run, 0, usize::MAX).await.unwrap();
            assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64), "without gaps");
            assert_eq!((events.len() as u64 - 1) % STEP, 0, "whole appends");
        }
    }
}

#[test]
fn another_process_is_named_by_its_pid_and_leaves_the_folder_when_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, mut lines) = start(dir.path());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();

    let refused = DataFolder::open(dir.path()).unwrap_err();
    let expected = StoreError::InUse { path: dir.path().display().to_string(), pid: child.id() };
    assert_eq!(refused, expected);

    child.kill().unwrap();
    child.wait().unwrap();
    DataFolder::open(dir.path()).unwrap();
}

/// The newest acknowledged event of every run, after so many acknowledgements and a kill.
fn write_and_kill(dir: &Path, acks: usize) -> HashMap<RunId, u64> {
    let (mut child, lines) = start(dir);
    let mut acknowledged = HashMap::new();
    let mut seen = 0;
    for line in lines.lines() {
        let line = line.unwrap();
        // The test harness prints lines of its own.
        let Some((run, seq)) = line.strip_prefix("acknowledged ").and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        acknowledged.insert(run.parse().unwrap(), seq.parse().unwrap());
        seen += 1;
        if seen == acks {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(seen >= acks, "the child ended by itself after {seen} acknowledgements");
    acknowledged
}

fn start(dir: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writes_until_it_is_killed", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", dir.display()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("ready") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the child has ended");
    }
    (child, lines)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "not a test: the process that the tests above start and kill"]
async fn writes_until_it_is_killed() {
    let mut dir = String::new();
    std::io::stdin().lock().read_line(&mut dir).unwrap();
    if dir.is_empty() {
        return;
    }
    let archive = DataFolder::open(dir.trim()).unwrap().archive().unwrap();
    say("\nready");
    let bands = (0..LANES).map(|n| {
        let archive = archive.clone();
        tokio::spawn(async move {
            let mut history = History::of(run_id(n));
            let mut kinds = vec![accepted()];
            loop {
                history.put(&archive, kinds).await;
                say(&format!("acknowledged {} {}", history.run, history.seq));
                kinds = vec![node_started("step"), node_succeeded("step")];
            }
        })
    });
    futures::future::try_join_all(bands).await.unwrap();
}

fn say(line: &str) {
    // One write, so that lines of two threads do not mix.
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}
