//! The data folder: in use, missing, not writable.

use std::os::unix::fs::PermissionsExt;

use crate::harness::{GATE, HELLO, Sandbox, assert_transcript};

#[test]
fn a_folder_in_use_is_refused_with_the_pid_and_can_be_read() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE), ("hello.yaml", HELLO)]);
    let mut running = sandbox.spawn(&["run", "gate.yaml"]);
    running.wait_for("waits for signal");
    let refused = sandbox.transcript(&["run", "hello.yaml", "-i", "name=Ada"]);
    assert!(refused.contains(&format!("process {}", running.pid())), "{refused}");
    assert_transcript!(refused, @r#"
        exit 3
        --- stdout
        --- stderr
        error: ./switchyard-data is in use by process [PID]
        hint: stop that process first (Ctrl-C leaves its runs resumable)
        hint: meanwhile, list, show, events and watch work
    "#);
    let run = sandbox.newest_run();
    let shown = sandbox.json(&["runs", "show", &run, "--json"]);
    assert_eq!(shown["nodes"]["gate"]["waiting_for"], "signal `go`");
    assert_eq!(sandbox.output(&["runs", "cancel", &run]).status.code(), Some(3));
    running.interrupt();
    assert_eq!(running.ends().0, Some(130));
}

#[test]
fn a_folder_that_is_not_there_is_not_made_by_looking() {
    let sandbox = Sandbox::new();
    assert_transcript!(sandbox.transcript(&["runs", "list"]), @r#"
        exit 3
        --- stdout
        --- stderr
        error: there is no data folder ./switchyard-data
        hint: say where the runs are with --data DIR or SWITCHYARD_DATA
    "#);
    for args in [
        &["runs", "cancel", "run_00000000000000000000000000"][..],
        &["approvals", "list"],
        &["run", "--resume", "all"],
    ] {
        assert_eq!(sandbox.output(args).status.code(), Some(3), "{args:?}");
    }
    assert!(!sandbox.path().join("switchyard-data").exists());
}

#[test]
fn a_folder_that_cannot_be_used_is_said() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO), ("file", "not a folder")]);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml", "-i", "name=Ada", "--data", "file"]), @r#"
        exit 3
        --- stdout
        --- stderr
        error: cannot use file as data folder: it is not a directory
    "#);
    std::fs::create_dir(sandbox.path().join("closed")).unwrap();
    std::fs::set_permissions(sandbox.path().join("closed"), PermissionsExt::from_mode(0o500)).unwrap();
    let output = sandbox.output(&["run", "hello.yaml", "-i", "name=Ada", "--data", "closed/data"]);
    // Root ignores permissions.
    if !rustix::process::geteuid().is_root() {
        assert_eq!(output.status.code(), Some(3));
    }
}

/// A limit on the size of files stands for a disk that fills up.
#[test]
fn a_full_disk_stops_the_run_and_loses_nothing() {
    let many = "
name: many
nodes:
  again: {type: loop, until: '${{ iteration >= 1000 }}', max_iterations: 1000, nodes: {a: {type: function, function: noop}}}
";
    let sandbox = Sandbox::with(&[("many.yaml", many)]);
    let mut shell = std::process::Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 2000; exec \"$0\" run many.yaml";
    let output =
        shell.args(["-c", script, env!("CARGO_BIN_EXE_switchyard")]).current_dir(sandbox.path()).output();
    let said = crate::harness::transcript(&output.unwrap());
    assert!(said.starts_with("exit 3"), "{said}");
    // The limit is reached either during a write or during the commit.
    assert!(said.contains("error: cannot "), "{said}");
    assert!(said.contains("to ./switchyard-data/switchyard.db: "), "{said}");
    let run = sandbox.newest_run();
    assert!(said.contains(&format!("switchyard run --resume {run}")), "{said}");
    let document = sandbox.json(&["run", "--resume", &run, "--json"]);
    assert_eq!(document["status"], "succeeded");
}

#[test]
fn the_environment_says_where_the_folder_is() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let mut command = sandbox.command(&["run", "hello.yaml", "-i", "name=Ada", "--detach"]);
    let output = command.env("SWITCHYARD_DATA", "elsewhere").output().unwrap();
    assert_transcript!(crate::harness::transcript(&output), @r#"
        exit 0
        --- stdout
        [RUN]
        --- stderr
        hint: switchyard run --resume [RUN] --data elsewhere
    "#);
    assert!(sandbox.path().join("elsewhere/switchyard.db").exists());
}
