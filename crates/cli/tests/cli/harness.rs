//! A sandbox folder for every test, and the binary run in it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The time-out of every wait: much longer than any test needs, so that only a hang fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const HELLO: &str = r#"
name: hello
input: {type: object, required: [name], properties: {name: {type: string}}}
nodes:
  greet: {type: transform, value: "Hello, ${{ input.name }}!"}
  repeat: {type: function, function: echo, needs: [greet], input: {text: "${{ nodes.greet.output }}"}}
output: {greeting: "${{ nodes.repeat.output.text }}"}
"#;

/// A workflow that waits for the signal `go` between two steps.
pub(crate) const GATE: &str = r#"
name: gate
nodes:
  before: {type: transform, value: 1}
  gate: {type: wait, signal: go, needs: [before]}
  after: {type: transform, needs: [gate], value: {went: "${{ nodes.gate.output }}"}}
"#;

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
    /// The server that commands use, or `none`.
    server: std::cell::RefCell<String>,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), server: "none".to_owned().into() }
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let sandbox = Self::new();
        files.iter().for_each(|(name, text)| sandbox.file(name, text));
        sandbox
    }

    /// Starts a server on the folder; further commands go through it.
    pub(crate) fn up(&self) -> Running {
        let mut up = self.spawn(&["up", "--listen", "127.0.0.1:0"]);
        let line = up.wait_for("http://");
        let address = line.split_once("http://").unwrap().1.split('/').next().unwrap();
        *self.server.borrow_mut() = format!("http://{address}");
        up
    }

    /// Makes further commands open the folder directly again.
    pub(crate) fn without_server(&self) {
        "none".clone_into(&mut self.server.borrow_mut());
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text.trim_start()).unwrap();
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        // The settings of the environment in which the tests run must not matter.
        let set = std::env::vars_os().map(|(name, _)| name);
        let ours = |name: &std::ffi::OsString| {
            name.to_str().is_some_and(|name| name.starts_with("SWITCHYARD_") || name.starts_with("OTEL_"))
        };
        for name in set.filter(ours) {
            command.env_remove(name);
        }
        // A server that listens on this machine must not matter either.
        command.env("USER", "ada").env("SWITCHYARD_SERVER", &*self.server.borrow());
        command.env_remove("REDIS_URL").env_remove("CHECKPOINTER_NAMESPACE");
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The output of a command, and its exit code.
    pub(crate) fn transcript(&self, args: &[&str]) -> String {
        transcript(&self.output(args))
    }

    /// The JSON output of a command, which must succeed.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}\n{}", transcript(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The id of the newest run.
    pub(crate) fn newest_run(&self) -> String {
        self.json(&["runs", "list", "--json"])["runs"][0]["run_id"].as_str().unwrap().to_owned()
    }

    /// A `run` of the waiting workflow, interrupted while it waits.
    pub(crate) fn interrupted_at_gate(&self) -> String {
        let mut running = self.spawn(&["run", "gate.yaml"]);
        running.wait_for("waits for signal");
        running.interrupt();
        assert_eq!(running.ends().0, Some(130));
        self.newest_run()
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        self.spawn_with(args, &[])
    }

    /// Starts a command with additional environment variables.
    pub(crate) fn spawn_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Running {
        let mut command = self.command(args);
        command.envs(environment.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Running { child, lines, seen: Vec::new() }
    }
}

/// A running command.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    /// Reads stderr up to a line that contains `part`.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("`{part}` did not come after {:#?}", self.seen));
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn interrupt(&self) {
        self.send(Signal::INT);
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the command exits; returns the exit code and all of stderr.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end: {:#?}", self.seen),
            }
        }
        (self.child.wait().unwrap().code(), self.seen.join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn transcript(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().map_or("none".to_owned(), |code| code.to_string());
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}

/// Patterns of text that differs between test runs, with their replacements.
pub(crate) const FILTERS: [(&str, &str); 16] = [
    (r" --server http://127.0.0.1:\d+", ""),
    (r"run_[0-9a-z]{26}", "[RUN]"),
    (r"op_[0-9a-f]{32}", "[OPERATION]"),
    (r"dead_[0-9a-z]{26}(_\d+)?", "[DEAD]"),
    (r"appr_[0-9a-f]{16}", "[APPROVAL]"),
    (r"patch_[0-9a-f]{16}", "[PATCH]"),
    (r"sha256:[0-9a-f]{64}", "[HASH]"),
    (r"\d{4}-\d\d-\d\d[T ][\d:.]+Z", "[TIME]"),
    (r"\b(\d+ ms|\d+\.\d s)", "[TOOK]"),
    (r"in \d+ms", "in [TIME]"),
    (r"\b\d+ B\b", "[SIZE]"),
    (r#""stored_at_ms":\d+"#, r#""stored_at_ms":[MS]"#),
    (r"process \d+", "process [PID]"),
    (r"embedded-\d+", "embedded-[PID]"),
    // The column widths of tables depend on the replaced text.
    (r"(\S) {2,}", "$1  "),
    (r"(?m)^ {20,}", "    "),
];

/// Compares a transcript with the snapshot written beside it.
macro_rules! assert_transcript {
    ($text:expr, @$expected:literal) => {
        let mut settings = insta::Settings::clone_current();
        for (pattern, replacement) in crate::harness::FILTERS {
            settings.add_filter(pattern, replacement);
        }
        // The same helper may be called by several tests.
        settings.bind(|| insta::allow_duplicates! { insta::assert_snapshot!($text, @$expected) });
    };
}
pub(crate) use assert_transcript;
