//! The terminals of a reader: one for commands, and one for each background process.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::harness::PATIENCE;

/// The server address in the pages. Tests use another one, because it may be in use on this machine.
const WRITTEN: &str = "127.0.0.1:7070";

pub(super) struct Shell {
    page: String,
    folder: tempfile::TempDir,
    address: String,
    /// The server that commands use: none, until the page starts one.
    server: String,
    background: Vec<Child>,
    last_run: Option<String>,
    last_approval: Option<String>,
}

impl Shell {
    pub(super) fn new(page: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&super::repository().join("examples"), &folder.path().join("examples"));
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        Self {
            page: page.to_owned(),
            folder,
            address,
            server: "none".to_owned(),
            background: Vec::new(),
            last_run: None,
            last_approval: None,
        }
    }

    pub(super) fn save(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).unwrap();
    }

    pub(super) fn run(&mut self, command: &str, expected: &[String]) {
        let typed = self.filled_in(command);
        if is_server(command) || command.ends_with(" &") {
            return self.start(command, &typed);
        }
        let by = Instant::now() + PATIENCE;
        let (stdout, stderr) = loop {
            let (stdout, stderr, answer) = self.compare(command, &typed, expected);
            match answer {
                Ok(()) => break (stdout, stderr),
                // A reader types the command a moment later, when the state has changed; so retry.
                Err(_) if looks(command) && Instant::now() < by => {}
                Err(why) => panic!("{}: {why}", self.page),
            }
        };
        if !command.contains(" list") || self.last_run.is_none() {
            self.remember(&format!("{stderr}\n{stdout}"));
        } else {
            self.last_approval = last("appr_[0-9a-f]{16}", &stdout).or(self.last_approval.take());
        }
    }

    /// Runs a command, and compares its output with the page.
    fn compare(
        &self,
        command: &str,
        typed: &str,
        expected: &[String],
    ) -> (String, String, Result<(), String>) {
        let output = self.command(typed).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let (shown, meant) = (normal(&stdout), normal(&expected.join("\n")));
        let answer = if !output.status.success() {
            Err(format!("`{command}` failed\n{stdout}\n{stderr}"))
        } else if expected.is_empty() || pattern(&meant).is_match(&shown) {
            Ok(())
        } else {
            Err(format!("`{command}` prints\n{shown}\nand not\n{meant}\n--- stderr\n{stderr}"))
        };
        (stdout, stderr, answer)
    }

    /// Starts a background process; if it is a server, waits until it answers.
    fn start(&mut self, command: &str, typed: &str) {
        let mut process = self.command(typed.trim_end_matches(" &"));
        process.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = process.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        self.background.push(child);
        let (sender, said) = mpsc::channel();
        // The thread drains stderr: a process blocks when its pipe is full.
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)))
        });
        if is_server(command) {
            self.server = format!("http://{}", self.address);
            let sign = if command.starts_with("switchyard dev") { " version " } else { "Ctrl-C stops it" };
            let mut lines = Vec::new();
            while !lines.last().is_some_and(|line: &String| line.contains(sign)) {
                let line = said.recv_timeout(PATIENCE);
                let line = line.unwrap_or_else(|_| panic!("{}: `{command}` says {lines:#?}", self.page));
                lines.push(line);
            }
        }
    }

    fn command(&self, typed: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_switchyard"));
        let folder = binary.parent().unwrap().display();
        let typed = format!("PATH=\"{folder}:$PATH\"\n{typed}");
        let mut command = Command::new("bash");
        command.args(["-c", &typed]).current_dir(self.folder.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SWITCHYARD_") {
                command.env_remove(name);
            }
        }
        command.env("SWITCHYARD_SERVER", &self.server);
        command
            .env("SWITCHYARD_LISTEN", &self.address)
            .env("SWITCHYARD_URL", format!("http://{}", self.address));
        command
    }

    /// Replaces the ids and the address of the page by those of this walk.
    fn filled_in(&self, command: &str) -> String {
        let mut typed = command.replace(WRITTEN, &self.address);
        for (written, seen) in [("run_…", &self.last_run), ("appr_…", &self.last_approval)] {
            if typed.contains(written) {
                let seen =
                    seen.as_ref().unwrap_or_else(|| panic!("{}: no {written} before `{command}`", self.page));
                typed = typed.replace(written, seen);
            }
        }
        typed
    }

    fn remember(&mut self, output: &str) {
        self.last_run = last("run_[0-9a-z]{26}", output).or(self.last_run.take());
        self.last_approval = last("appr_[0-9a-f]{16}", output).or(self.last_approval.take());
    }
}

fn last(pattern: &str, text: &str) -> Option<String> {
    Some(Regex::new(pattern).unwrap().find_iter(text).last()?.as_str().to_owned())
}

/// Whether a command changes nothing.
fn looks(command: &str) -> bool {
    ["list", "show", "events"].iter().any(|word| command.split_whitespace().any(|typed| typed == *word))
}

impl Drop for Shell {
    fn drop(&mut self) {
        for mut child in self.background.drain(..).rev() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::TERM);
            let _ = child.wait();
        }
    }
}

fn is_server(command: &str) -> bool {
    command.starts_with("switchyard up") || command.starts_with("switchyard dev")
}

/// Replaces the parts of the output that differ between walks.
fn normal(text: &str) -> String {
    let mut text = text.trim_end().to_owned();
    for (pattern, shown) in [
        (r"run_[0-9a-z]{26}", "run_…"),
        (r"appr_[0-9a-f]{16}", "appr_…"),
        (r"sha256:[0-9a-f]{64}", "sha256:…"),
        (r"\d{4}-\d\d-\d\d[T ][\d:.]+Z", "2026-01-31T12:00:00Z"),
        (r"127\.0\.0\.1:\d+", WRITTEN),
        (r"(?m)[ \t]+$", ""),
        (r"(\S) {2,}", "$1  "),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, shown).into_owned();
    }
    text
}

/// The regular expression for a text of a page: `…` matches within a line; alone on a line, it matches any lines.
fn pattern(meant: &str) -> Regex {
    let line = |line: &str| match line.trim() {
        "…" => r"(?s:.*)".to_owned(),
        _ => line.split('…').map(regex::escape).collect::<Vec<_>>().join("[^\n]*"),
    };
    let lines: Vec<String> = meant.lines().map(line).collect();
    Regex::new(&format!("^{}$", lines.join("\n"))).unwrap()
}

fn copy(from: &Path, to: &PathBuf) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_dir() {
            continue;
        }
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn dots_stand_for_any_text() {
    assert!(pattern("a …\n…\nz").is_match("a b\nc\nd\nz"));
    assert!(!pattern("a …").is_match("a b\nc"));
    assert!(!pattern("{\"paid\":20}").is_match("{\"paid\":21}"));
}
