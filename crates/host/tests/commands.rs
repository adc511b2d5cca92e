//! Processes that a `command` node leaves behind end with its attempt, even if they left its group or session.
//!
//! These tests have a process of their own, because adopting orphans is a setting of the whole process.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchyard_core::RunId;
use switchyard_core::run::RunStatus;
use switchyard_host::embedded::{Embedded, Options};
use switchyard_lang::Program;
use switchyard_runtime::kinds::{Commands, NodeSettings};
use switchyard_runtime::{Principal, Submission, ids};
use tokio::sync::oneshot;

/// Longer than any test takes and shorter than the programs sleep, so that a stuck test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a grandchild that is in a session of its own and has lost its parent, and then does `$THEN`.
const SCRIPT: &str = r#"
exec 3>"$FIFO"
$WIPE setsid sh -c 'setsid sh -c "echo started >&3; exec sleep 100" &'
exec $THEN
"#;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Success,
    TimeOut,
    Cancel,
}

/// Reports when the grandchild has started and when the last process that holds the pipe is gone.
struct Grandchild {
    started: oneshot::Receiver<String>,
    gone: tokio::task::JoinHandle<()>,
}

impl Grandchild {
    fn watch(fifo: PathBuf) -> Self {
        let (tell, started) = oneshot::channel();
        let gone = tokio::task::spawn_blocking(move || {
            let mut pipe = BufReader::new(File::open(fifo).unwrap());
            let mut line = String::new();
            pipe.read_line(&mut line).unwrap();
            let _ = tell.send(line);
            pipe.read_to_end(&mut Vec::new()).unwrap();
        });
        Self { started, gone }
    }
}

async fn fixture(folder: &Path, commands: Commands) -> Embedded {
    let nodes = NodeSettings { allow_commands: true, commands, ..NodeSettings::default() };
    let fixture = Embedded::open(Options { nodes, ..Options::new(folder) }).await.unwrap();
    fixture.work();
    fixture
}

async fn start(fixture: &Embedded, fifo: &Path, wipe: &str, ending: Ending) -> RunId {
    let then = if ending == Ending::Success { "true" } else { "sleep 100" };
    let timeout = if ending == Ending::TimeOut { "5s" } else { "1h" };
    let env = json!({ "FIFO": fifo, "WIPE": wipe, "THEN": then });
    let node = json!({ "type": "command", "command": ["sh", "-c", SCRIPT], "env": env, "timeout": timeout });
    let program = Program::compile_value(&json!({ "name": "leave", "nodes": { "leave": node } })).unwrap();
    fixture
        .engine()
        .submit(&Principal::local("tester"), Submission::new(Arc::new(program), json!({})))
        .await
        .unwrap()
        .run()
}

async fn nothing_is_left(commands: Commands, wipe: &str, ending: Ending) {
    let what = format!("{commands:?}, `{wipe}`, {ending:?}");
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let fixture = fixture(&folder.path().join("data"), commands).await;
    let grandchild = Grandchild::watch(fifo.clone());
    let run = start(&fixture, &fifo, wipe, ending).await;
    if ending == Ending::Cancel {
        assert_eq!(grandchild.started.await.unwrap(), "started\n", "{what}");
        fixture
            .engine()
            .cancel(&Principal::local("ada"), run, &ids::operation_id(), "enough", false, false)
            .await
            .unwrap();
    }
    let ended = tokio::time::timeout(PATIENCE, fixture.engine().wait_for_end(run)).await;
    ended.unwrap_or_else(|_| panic!("the run does not end: {what}")).unwrap();
    let status = fixture.engine().state(run).await.unwrap().status();
    let expected = match ending {
        Ending::Success => RunStatus::Succeeded,
        Ending::TimeOut => RunStatus::Failed,
        Ending::Cancel => RunStatus::Cancelled,
    };
    assert_eq!(status, expected, "{what}");
    let gone = tokio::time::timeout(PATIENCE, grandchild.gone).await;
    gone.unwrap_or_else(|_| panic!("the grandchild lives: {what}")).unwrap();
    fixture.shut_down(Duration::ZERO).await;
}

#[tokio::test]
async fn a_grandchild_with_a_session_of_its_own_ends_with_the_attempt() {
    let by_its_token = Commands { cgroups: false, ..Commands::default() };
    let by_adoption = Commands { adopt_orphans: true, ..by_its_token.clone() };
    // Where no cgroup can be created, this tests recognition by the token again.
    let by_its_cgroup = Commands::default();
    for ending in [Ending::Success, Ending::TimeOut, Ending::Cancel] {
        nothing_is_left(by_its_token.clone(), "", ending).await;
        nothing_is_left(by_its_cgroup.clone(), "", ending).await;
        nothing_is_left(by_adoption.clone(), "env -i", ending).await;
    }
    assert_eq!(zombies(), Vec::<String>::new(), "what was adopted is reaped");
}

/// Children of this process that have ended and were not waited for.
fn zombies() -> Vec<String> {
    let own = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let is_ours = |stat: &String| {
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[0] == "Z" && fields[1] == own
    };
    stats.filter(is_ours).collect()
}
