//! A private Postgres server for a test. It needs the Debian package `postgresql`, or `initdb` and `postgres` in the
//! path.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::free_port;

const SCRIPT: &str = include_str!("postgres.sh");

/// Whether commits reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// As in production: for measurements.
    On,
    /// Faster, and as safe as long as the machine itself does not crash.
    Off,
}

/// A server, stopped and removed when this is dropped or the process ends.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    sync: Sync,
    tls: bool,
    /// `None` while the server is stopped.
    keeper: Option<Child>,
}

/// The server that all tests of this process share. Each takes a schema of its own: [`fresh_schema`].
pub fn shared() -> &'static Postgres {
    static SHARED: OnceLock<Postgres> = OnceLock::new();
    SHARED.get_or_init(|| Postgres::start(Sync::Off))
}

/// A name for a schema that no other test uses. Opening an archive in it creates the schema.
pub fn fresh_schema() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Postgres {
    /// Starts a separate server, for a test that stops it or measures it.
    pub fn start(sync: Sync) -> Self {
        Self::prepared(sync, None)
    }

    /// Starts a server that accepts TCP connections only with TLS.
    pub fn start_with_tls(certificates: &Certificates) -> Self {
        Self::prepared(Sync::Off, Some((certificates, "trust")))
    }

    /// Starts a server that accepts TCP connections only with a client certificate that names the user.
    pub fn start_asking_for_certificates(certificates: &Certificates) -> Self {
        Self::prepared(Sync::Off, Some((certificates, "trust clientcert=verify-full")))
    }

    /// Starts a server; `tls` has the certificates and the authentication method.
    fn prepared(sync: Sync, tls: Option<(&Certificates, &str)>) -> Self {
        let programs = programs();
        let folder = tempfile::Builder::new().prefix("switchyard-postgres-").tempdir().expect("a folder");
        if let Some((user, group)) = postgres_user() {
            chown(folder.path(), Some(user), Some(group)).expect("the folder is ours to give away");
        }
        init(&programs, folder.path());
        if let Some((certificates, rule)) = tls {
            put_certificates(certificates, rule, &folder.path().join("data"));
        }
        let tls = tls.is_some();
        let mut server = Self { programs, folder, port: free_port(), sync, tls, keeper: None };
        server.launch();
        server
    }

    /// The URL of the server over TCP.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The URL of the server over its Unix socket.
    pub fn socket_url(&self) -> String {
        format!("postgres://postgres@/postgres?host={}&port={}", self.folder.path().display(), self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Executes statements in a database with `psql`, each by itself. Returns the unformatted output, or the server's
    /// message as `Err`.
    pub fn psql(&self, database: &str, statements: &[&str]) -> Result<String, String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-XqtA", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database]);
        command.arg("-h").arg(self.folder.path()).args(["-p", &self.port.to_string()]);
        for statement in statements {
            command.args(["-c", statement]);
        }
        let done = command.output().expect("psql can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }

    /// Pauses every process of the server, like a machine that hangs, until [`Postgres::go_on`]. Returns how many.
    pub fn pause(&self) -> usize {
        self.signal("-STOP")
    }

    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    /// Signals the main process first, so that it starts no further process. Returns the number of signalled
    /// processes.
    fn signal(&self, signal: &str) -> usize {
        let pid_file = fs::read_to_string(self.folder.path().join("data/postmaster.pid")).unwrap_or_default();
        let Some(server) = pid_file.lines().next().map(str::trim).filter(|pid| !pid.is_empty()) else {
            return 0;
        };
        let mut pids = vec![server.to_owned()];
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // The name of the program is in parentheses, and may contain any character.
            let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
            if parent == Some(server) {
                pids.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        // A process may have ended meanwhile.
        let heard = |pid: &&String| {
            let sent = Command::new("kill").args([signal, pid.as_str()]).stderr(Stdio::null()).status();
            sent.is_ok_and(|status| status.success())
        };
        pids.iter().filter(heard).count()
    }

    /// Stops the server in order. Connections are closed, committed data is kept.
    pub fn stop(&mut self) {
        self.end("stop");
    }

    /// Kills the server, as a crash does.
    pub fn crash(&mut self) {
        self.end("crash");
    }

    /// Starts a stopped server again, on the same port with the same data.
    pub fn start_again(&mut self) {
        assert!(self.keeper.is_none(), "the server runs");
        self.launch();
    }

    fn end(&mut self, how: &str) {
        let Some(mut keeper) = self.keeper.take() else { return };
        // A paused process does not react to the request to stop.
        self.go_on();
        let mut stdin = keeper.stdin.take().expect("stdin is a pipe");
        writeln!(stdin, "{how}").expect("the keeper listens");
        keeper.wait().expect("the keeper ends");
    }

    fn launch(&mut self) {
        // Another process may have taken the port meanwhile.
        for _ in 0..5 {
            match self.try_launch() {
                Ok(keeper) => return self.keeper = Some(keeper),
                Err(log) if log.contains("Address already in use") => self.port = free_port(),
                Err(log) => panic!("Postgres did not start:\n{log}"),
            }
        }
        panic!("Postgres found no free port");
    }

    fn try_launch(&self) -> Result<Child, String> {
        let folder = self.folder.path();
        let mut command = Command::new("sh");
        command.arg("-c").arg(SCRIPT).arg("postgres.sh").arg(folder);
        command.args(as_postgres()).arg(self.programs.join("postgres"));
        command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
        command.args(["-h", "127.0.0.1,127.0.0.2", "-p", &self.port.to_string()]);
        for setting in self.settings() {
            command.args(["-c", setting]);
        }
        if self.tls {
            command.args(["-c", "ssl=on", "-c", "ssl_ca_file=root.crt"]);
        }
        // A separate process group: Ctrl-C goes to the tests, and the server ends with them.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut keeper = command.spawn().expect("sh is there");
        let log = keeper.stderr.take().expect("stderr is a pipe");
        match wait_until_ready(log) {
            Ok(()) => Ok(keeper),
            Err(log) => {
                drop(keeper.stdin.take());
                Err(log)
            }
        }
    }

    fn settings(&self) -> &'static [&'static str] {
        match self.sync {
            Sync::On => &["max_connections=200"],
            Sync::Off => {
                &["max_connections=200", "fsync=off", "synchronous_commit=off", "full_page_writes=off"]
            }
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The folder is removed right after this.
        self.crash();
    }
}

/// Reads the log until the server accepts connections, and keeps reading it, so that the server never blocks on its
/// log.
fn wait_until_ready(log: ChildStderr) -> Result<(), String> {
    let mut log = BufReader::new(log);
    let mut seen = String::new();
    loop {
        let begin = seen.len();
        match log.read_line(&mut seen) {
            Ok(0) | Err(_) => return Err(seen),
            Ok(_) if seen[begin..].contains("ready to accept connections") => break,
            Ok(_) => {}
        }
    }
    std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
    Ok(())
}

/// Copies the certificates to where Postgres looks for them. The server must own its key file.
fn put_certificates(certificates: &Certificates, rule: &str, data: &Path) {
    let key = data.join("server.key");
    let files = [
        (certificates.certificate(), data.join("server.crt")),
        (certificates.key(), key.clone()),
        (certificates.ca(), data.join("root.crt")),
    ];
    for (from, to) in &files {
        fs::copy(from, to).expect("a copy");
        if let Some((user, group)) = postgres_user() {
            chown(to, Some(user), Some(group)).expect("the file is ours to give away");
        }
    }
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("permissions");
    let rules = format!("local all all trust\nhostssl all all all {rule}\n");
    fs::write(data.join("pg_hba.conf"), rules).expect("a file");
}

fn init(programs: &Path, folder: &Path) {
    let mut command = if as_postgres().is_empty() {
        Command::new(programs.join("initdb"))
    } else {
        let mut command = Command::new(as_postgres()[0]);
        command.args(&as_postgres()[1..]).arg(programs.join("initdb"));
        command
    };
    command.arg("-D").arg(folder.join("data"));
    command.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
    let done = command.current_dir(folder).output().expect("initdb can be started");
    assert!(done.status.success(), "initdb failed:\n{}", String::from_utf8_lossy(&done.stderr));
}

/// The folder of `initdb` and `postgres`: Debian's newest version, or the path.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
        .max_by_key(|bin| version_of(bin));
    if let Some(bin) = newest {
        return bin;
    }
    let in_path = Command::new("initdb").arg("--version").output().is_ok_and(|done| done.status.success());
    assert!(in_path, "this test needs Postgres: install the Debian package `postgresql`");
    PathBuf::new()
}

fn version_of(bin: &Path) -> Option<u32> {
    bin.parent()?.file_name()?.to_str()?.parse().ok()
}

/// The command prefix that runs a program as the user postgres, because Postgres refuses to run as root.
fn as_postgres() -> &'static [&'static str] {
    match postgres_user() {
        Some(_) => &["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"],
        None => &[],
    }
}

/// The user and group to run as, if this process is root.
fn postgres_user() -> Option<(u32, u32)> {
    let id = |args: &[&str]| -> Option<u32> {
        let done = Command::new("id").args(args).output().ok()?;
        String::from_utf8(done.stdout).ok()?.trim().parse().ok()
    };
    if id(&["-u"]) != Some(0) {
        return None;
    }
    let user = id(&["-u", "postgres"]).zip(id(&["-g", "postgres"]));
    Some(user.expect("as root, Postgres needs a user `postgres`: the Debian package `postgresql` makes one"))
}
