//! The help of every command has a purpose and an example, and every command that prints data has `--json`.

use std::io::Read;
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::harness::Sandbox;

/// Commands that print no data, or only JSON or a script.
const WITHOUT_JSON: [&str; 8] =
    ["api", "worker", "up", "dev", "schema", "completions", "workflows show", "checkpoints export"];

/// Every command with its help, found through the help of its parent.
fn leaves(sandbox: &Sandbox, path: Vec<String>) -> Vec<(Vec<String>, String)> {
    let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
    args.push("--help");
    let help = String::from_utf8(sandbox.output(&args).stdout).unwrap();
    let Some(list) = help.split("Commands:\n").nth(1) else { return vec![(path, help)] };
    let names =
        list.lines().take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
    names
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| name != "help")
        .flat_map(|name| leaves(sandbox, [path.clone(), vec![name]].concat()))
        .collect()
}

#[test]
fn every_command_has_an_example_and_json() {
    let sandbox = Sandbox::new();
    let leaves = leaves(&sandbox, Vec::new());
    assert!(leaves.len() > 30, "{} commands", leaves.len());
    for (path, help) in leaves {
        let name = path.join(" ");
        let example = help.split("Example").nth(1).unwrap_or_else(|| panic!("`{name}` has no example"));
        assert!(example.contains("switchyard "), "{name}: {example}");
        let json = help.contains("--json");
        assert_eq!(json, !WITHOUT_JSON.contains(&&*name), "--json of `{name}`");
        assert!(!help.contains('\\'), "`{name}` shows an escape: {help}");
        assert!(help.lines().next().is_some_and(|line| !line.is_empty()), "{name}");
    }
}

#[test]
fn tables_fit_the_terminal() {
    let sandbox = Sandbox::with(&[(
        "wide.yaml",
        "name: wide\nnodes:\n  ask: {type: hitl, prompt: 'a question that is much longer than a narrow terminal is wide, and then some'}\n",
    )]);
    let mut running = sandbox.spawn(&["run", "wide.yaml"]);
    running.wait_for("waits for approval");
    running.interrupt();
    running.ends();
    let shown = on_terminal(sandbox.command(&["approvals", "list"]), 100);
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 100), "{shown}");
    assert!(shown.contains("question") && shown.contains("some"), "nothing is cut off: {shown}");
    let id = sandbox.newest_run();
    assert!(shown.contains(&id), "ids are not broken: {shown}");
}

/// The output of a command on a terminal of this width.
pub(crate) fn on_terminal(mut command: Command, columns: u16) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let screen = std::fs::OpenOptions::new().write(true).open(name).unwrap();
    let mut child = command.stdout(screen).spawn().unwrap();
    // Dropping the command closes its copy of the terminal, so that reading ends when the child does.
    drop(command);
    let mut shown = Vec::new();
    let mut terminal = std::fs::File::from(terminal);
    let mut buffer = [0; 4_096];
    while let Ok(read @ 1..) = terminal.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..read]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(shown).unwrap()
}
