//! Ctrl-C leaves a run resumable.

use rustix::process::Signal;

use crate::harness::{GATE, Sandbox, assert_transcript};

#[test]
fn an_interrupted_run_is_signalled_and_resumed() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    let mut running = sandbox.spawn(&["run", "gate.yaml"]);
    running.wait_for("waits for signal");
    running.interrupt();
    let (code, said) = running.ends();
    assert_eq!(code, Some(130));
    assert_transcript!(said, @r#"
        [RUN] of gate
        before started
        before succeeded ([TOOK])
        gate started
        gate waits for signal `go`
        hint: stop with Ctrl-C, then switchyard runs signal [RUN] go, then switchyard run --resume [RUN]
        interrupted: nothing is lost, and it can be resumed
        hint: switchyard run --resume [RUN]
    "#);
    let run = sandbox.newest_run();
    assert_transcript!(sandbox.transcript(&["runs", "signal", &run, "go", "--payload", "7"]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: running
        hint: no worker runs now; carry it on with switchyard run --resume [RUN]
    "#);
    assert_transcript!(sandbox.transcript(&["run", "--resume", &run]), @r#"
        exit 0
        --- stdout
        {"went":7}
        --- stderr
        [RUN] of gate
        after started
        after succeeded ([TOOK])
    "#);
    assert_transcript!(sandbox.transcript(&["run", "--resume", &run]), @r#"
        exit 0
        --- stdout
        {"went":7}
        --- stderr
    "#);
}

#[test]
fn a_supervisor_may_stop_it_as_well() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    let mut running = sandbox.spawn(&["run", "gate.yaml", "--json"]);
    running.wait_for("waits for signal");
    running.send(Signal::TERM);
    let (code, said) = running.ends();
    assert_eq!(code, Some(143));
    assert!(said.contains("hint: switchyard run --resume run_"), "{said}");
}

/// Without a budget, each node would take hours, and all of them days.
#[test]
fn a_process_that_evaluates_ends_when_it_is_told_to() {
    let mut text = "name: heavy\nnodes:\n  a0: {type: transform, value: 1}\n".to_owned();
    for n in 1..100 {
        text.push_str(&format!(
            "  a{n}: {{type: transform, needs: [a{}], on_error: continue, \
             value: \"${{{{ lists.range(1000000).all(x, lists.range(x).all(y, x + y >= 0)) }}}}\"}}\n",
            n - 1
        ));
    }
    let sandbox = Sandbox::with(&[("heavy.yaml", &text)]);
    let mut running = sandbox.spawn(&["run", "heavy.yaml"]);
    running.wait_for("a1 started");
    running.send(Signal::TERM);
    assert_eq!(running.ends().0, Some(143));
}

#[test]
fn a_resumed_run_says_what_it_waits_for() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    let run = sandbox.interrupted_at_gate();
    let mut running = sandbox.spawn(&["run", "--resume", &run]);
    running.wait_for("gate waits for signal `go`");
    running.interrupt();
    assert_eq!(running.ends().0, Some(130));
}

#[test]
fn a_running_task_is_done_again() {
    // The program writes, so that it notices the closed pipe and exits after its parent.
    let slow = "
name: slow
nodes:
  a: {type: command, command: [sh, -c, 'until test -e done; do echo; sleep 0.1; done; echo 1']}
";
    let sandbox = Sandbox::with(&[("slow.yaml", slow)]);
    let mut running = sandbox.spawn(&["run", "slow.yaml", "--allow-commands"]);
    running.wait_for("a started");
    running.interrupt();
    running.wait_for("hint: switchyard run --resume");
    // A second interrupt does not wait for the task.
    running.interrupt();
    assert_eq!(running.ends().0, Some(130));
    let run = sandbox.newest_run();
    sandbox.file("done", "");
    let output = sandbox.transcript(&["run", "--resume", &run, "--allow-commands"]);
    assert_transcript!(output, @r#"
        exit 0
        --- stdout
        1
        --- stderr
        [RUN] of slow
        a started
        a succeeded ([TOOK])
    "#);
}

#[test]
fn ids_that_are_none_and_runs_that_are_not_there_are_told_apart() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    sandbox.interrupted_at_gate();
    assert_transcript!(sandbox.transcript(&["run", "--resume", "run_1"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: invalid value 'run_1' for '--resume <RUN|all>': `run_1` is not a run id (run_ and 26 letters and digits)

        For more information, try '--help'.
    "#);
    assert_transcript!(sandbox.transcript(&["run", "--resume", "run_00000000000000000000000000"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no run [RUN]
        hint: `switchyard runs list` shows the runs
    "#);
}
