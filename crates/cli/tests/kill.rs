//! `kill -9` at random moments: every accepted run is resumed and ends, exactly once in its history.
//!
//! The real binary works on runs of every kind, is killed after a random number of effects, and is
//! started again, many times. The seed is printed; `SWITCHYARD_KILL_SEED` repeats it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use switchyard_chaos::{Executions, Violations, check_run};
use switchyard_core::RunId;
use switchyard_core::run::{Event, EventKind, Run, RunStatus};
use switchyard_runtime::History;

const ROUNDS: usize = 60;
const RUNS: usize = 24;

/// A workflow with everything that can be interrupted: commands with effects, retries, timers, children, skips,
/// compensation.
const WORKFLOW: &str = r#"
name: interrupted
input: { type: object, required: [log, fails] }
nodes:
  first: { type: command, command: [sh, -c, &effect 'echo "$SWITCHYARD_IDEMPOTENCY_KEY" >> "$LOG"; echo 1'], env: &env { LOG: "${{ input.log }}" } }
  shaky:
    type: command
    needs: [first]
    command: [sh, -c, 'echo "$SWITCHYARD_IDEMPOTENCY_KEY" >> "$LOG"; test "$SWITCHYARD_ATTEMPT" -ge 3']
    env: *env
    retry: { max_attempts: 5, backoff: fixed, initial: 2ms, jitter: false }
    compensate: { type: command, command: [sh, -c, *effect], env: *env }
  nap: { type: sleep, needs: [first], duration: 3ms }
  never: { type: function, function: noop, needs: [first], when: "false" }
  each:
    type: map
    needs: [nap]
    items: [1, 2, 3]
    concurrency: 2
    input: { log: "${{ input.log }}", n: "${{ item }}" }
    nodes:
      work: { type: command, command: [sh, -c, *effect], env: *env }
      double: { type: transform, needs: [work], value: "${{ input.n * 2 }}" }
  again:
    type: loop
    needs: [shaky]
    until: iteration == 3
    input: { log: "${{ input.log }}" }
    nodes: { work: { type: command, command: [sh, -c, *effect], env: *env } }
  join: { type: transform, needs: [each, again, never], value: "${{ nodes.each.output }}" }
  last: { type: function, function: fail, needs: [join], when: "${{ input.fails }}", input: { retryable: false } }
output: "${{ nodes.join.output }}"
"#;

#[test]
#[expect(clippy::print_stdout, reason = "the seed is the bug report")]
fn killed_at_any_moment_every_run_ends() {
    let seed = seed();
    println!("SWITCHYARD_KILL_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let runs = submit(folder.path());
    let mut killed = 0;
    for _ in 0..ROUNDS {
        // A small number kills the process while it recovers, a large one while it works.
        let effects = random.random_range(1..10);
        killed += usize::from(kill_after(start(folder.path()), &folder.path().join("effects"), effects));
    }
    let last = start(folder.path()).wait_with_output().unwrap();
    println!("killed {killed} times\n{}", String::from_utf8_lossy(&last.stderr));
    assert!(killed >= 15, "it was hardly interrupted: raise the number of runs");
    let checked = tokio::runtime::Runtime::new().unwrap().block_on(check(folder.path(), &runs));
    println!("checked {checked} runs");
}

#[expect(clippy::disallowed_methods, reason = "a test is told its seed in no other way")]
fn seed() -> u64 {
    std::env::var("SWITCHYARD_KILL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random)
}

fn switchyard(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
    command.arg("--data").arg(folder.join("data")).stdin(Stdio::null());
    command
}

/// Submits runs; every other one fails and is compensated.
fn submit(folder: &Path) -> Vec<(RunId, RunStatus)> {
    let (file, log) = (folder.join("workflow.yaml"), folder.join("effects"));
    std::fs::write(&file, WORKFLOW).unwrap();
    let submit = |i: usize| {
        let fails = i % 2 == 1;
        let input = serde_json::json!({"log": log, "fails": fails}).to_string();
        let output =
            switchyard(folder).args(["run", "--detach", "--input", &input]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let run = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        (run, if fails { RunStatus::Failed } else { RunStatus::Succeeded })
    };
    (0..RUNS).map(submit).collect()
}

fn start(folder: &Path) -> Child {
    switchyard(folder)
        .args(["run", "--resume", "all", "--allow-commands", "--slots", "2"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the process after its programs had `effects` more effects. Returns whether it was still alive then.
fn kill_after(mut process: Child, log: &Path, effects: usize) -> bool {
    let goal = lines_of(log) + effects;
    let mut alive = true;
    while alive && lines_of(log) < goal {
        std::thread::yield_now();
        alive = process.try_wait().unwrap().is_none();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    alive
}

fn lines_of(log: &Path) -> usize {
    std::fs::read_to_string(log).map_or(0, |text| text.lines().count())
}

async fn check(folder: &Path, runs: &[(RunId, RunStatus)]) -> usize {
    let history = switchyard_host::embedded::peek(folder.join("data")).unwrap();
    let effects = std::fs::read_to_string(folder.join("effects")).unwrap();
    let mut executions = Executions::new();
    for line in effects.lines() {
        *executions.entry(line.to_owned()).or_default() += 1;
    }
    let everything =
        switchyard_store::RunFilter { include_children: true, limit: 10_000, ..Default::default() };
    let records = history.runs(&everything).await.unwrap().items;
    let mut violations = Violations::default();
    for record in &records {
        let run = check_run(&history, record.run_id, &executions, &mut violations).await.unwrap();
        runs_only_what_was_claimed(&history, &run, &executions).await;
    }
    assert!(violations.0.is_empty(), "{:#?}", violations.0);
    for (run, expected) in runs {
        let record = records.iter().find(|record| record.run_id == *run).expect("accepted and lost");
        assert_eq!(record.status, *expected, "{run}: {:?}", record.error);
    }
    assert_eq!(records.len(), RUNS * 7, "each run has three children of its map and three of its loop");
    records.len()
}

/// Asserts that no program ran more often than its node was claimed: a claim is archived before its program starts.
async fn runs_only_what_was_claimed(history: &History, run: &Run, executions: &Executions) {
    let events = history.events(run.id, 0, None).await.unwrap();
    for ix in run.ir.indices() {
        let node = &run.ir.node(ix).id;
        let is_start = |event: &&Event| matches!(&event.kind, EventKind::NodeStarted { node: started, .. } if started == node);
        let started = events.iter().filter(is_start).count();
        let ran = executions.get(&format!("{}/{node}", run.id)).copied().unwrap_or(0);
        assert!(ran as usize <= started, "{}/{node} ran {ran} times for {started} claims", run.id);
    }
}
