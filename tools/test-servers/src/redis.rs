//! A private Redis server for a test. It needs `redis-server` in the path: the Debian package `redis-server`. If the
//! environment variable [`PROGRAM`] names a compatible server, that one is started instead.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

const SCRIPT: &str = include_str!("redis.sh");

/// The environment variable that names the program to start instead of `redis-server`.
const PROGRAM: &str = "SWITCHYARD_TEST_REDIS";

/// Options for an append-only file, synced every second.
const KEEPING: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "everysec"];

/// The log message of a server that is ready. Newer versions begin the sentence with it.
const READY: &str = "eady to accept connections";

/// A server on a Unix socket, stopped and removed when this is dropped or the process ends.
#[derive(Debug)]
pub struct Redis {
    folder: TempDir,
    /// Additional command line options.
    options: Vec<String>,
    /// `None` while the server is stopped.
    keeper: Option<Child>,
}

/// The server that all tests of this process share. Each takes a prefix of its own: [`fresh_prefix`].
pub fn shared() -> &'static Redis {
    static SHARED: OnceLock<Redis> = OnceLock::new();
    SHARED.get_or_init(Redis::start)
}

/// A key prefix that no other test of this process uses.
pub fn fresh_prefix() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test{}:", COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Redis {
    /// Starts a separate server, for a test that stops it, flushes it or measures it. It has an append-only file, as
    /// in production, synced every second.
    pub fn start() -> Self {
        Self::with_options(|_| Vec::new())
    }

    /// Like `start`, with additional command line options; the closure gets the server's folder.
    pub fn with_options(options: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let program = program();
        let installed = Command::new(&program).arg("--version").output();
        let installed = installed.is_ok_and(|done| done.status.success());
        assert!(installed, "this test needs {program:?}: install the Debian package `redis-server`");
        let folder = tempfile::Builder::new().prefix("switchyard-redis-").tempdir().expect("a folder");
        let options = options(folder.path());
        let mut server = Self { folder, options, keeper: None };
        server.start_again();
        server
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// The data folder of the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the server in order: it writes its data first.
    pub fn stop(&mut self) {
        self.end("stop");
    }

    /// Kills the server, as a crash does.
    pub fn crash(&mut self) {
        self.end("crash");
    }

    fn end(&mut self, how: &str) {
        if let Some(keeper) = self.keeper.take() {
            end(keeper, how);
        }
    }

    /// Starts a stopped server again, on the same socket with the data in its folder.
    pub fn start_again(&mut self) {
        self.launch(&KEEPING, READY);
    }

    /// Starts a stopped server with more options, and does not wait until it has loaded its data.
    pub fn start_unready(&mut self, options: &[&str]) {
        self.launch(&[&KEEPING[..], options].concat(), "Server initialized");
    }

    /// Starts a stopped server with the data of the last `SAVE`, which a stale replica would have.
    pub fn start_from_dump(&mut self) {
        self.launch(&["--appendonly", "no"], READY);
    }

    fn launch(&mut self, options: &[&str], said_first: &str) {
        assert!(self.keeper.is_none(), "the server runs");
        let [folder, socket] = [self.folder.path(), &self.socket()].map(|path| path.display().to_string());
        let words = ["--port", "0", "--save", ""].into_iter().chain(self.options.iter().map(String::as_str));
        let words = words.chain(options.iter().copied());
        let words: Vec<&str> = words.chain(["--dir", &folder, "--unixsocket", &socket]).collect();
        self.keeper = Some(launch(self.folder.path(), &words, said_first));
    }
}

/// Starts the server with these command line options, and waits until its log contains `said_first`.
pub(crate) fn launch(folder: &Path, words: &[&str], said_first: &str) -> Child {
    let mut command = Command::new("sh");
    command.arg("-c").arg(SCRIPT).arg("redis.sh").arg(folder).arg(program()).args(words);
    // A separate process group: Ctrl-C goes to the tests, and the server ends with them.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut keeper = command.spawn().expect("sh is there");
    let log = keeper.stdout.take().expect("stdout is a pipe");
    if let Err(log) = wait_until(log, said_first) {
        drop(keeper.stdin.take());
        panic!("the server did not start:\n{log}");
    }
    keeper
}

/// Ends a server that was launched; `how` is a command of `redis.sh`.
pub(crate) fn end(mut keeper: Child, how: &str) {
    let mut stdin = keeper.stdin.take().expect("stdin is a pipe");
    writeln!(stdin, "{how}").expect("the keeper listens");
    keeper.wait().expect("the keeper ends");
}

impl Drop for Redis {
    fn drop(&mut self) {
        // The folder is removed right after this.
        self.crash();
    }
}

fn program() -> OsString {
    std::env::var_os(PROGRAM).unwrap_or_else(|| "redis-server".into())
}

/// Reads the log until the server writes `said`, and keeps reading it, so that the server never blocks on its log.
fn wait_until(log: ChildStdout, said: &str) -> Result<(), String> {
    let mut log = BufReader::new(log);
    let mut seen = String::new();
    loop {
        let begin = seen.len();
        match log.read_line(&mut seen) {
            Ok(0) | Err(_) => return Err(seen),
            Ok(_) if seen[begin..].contains(said) => break,
            Ok(_) => {}
        }
    }
    std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
    Ok(())
}
