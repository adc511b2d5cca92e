//! The processes: two APIs, three workers, Redis and Postgres behind proxies.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use switchyard_archive_postgres::{PostgresArchive, PostgresCas, Target};
use switchyard_core::RunId;
use switchyard_core::run::EventKind;
use switchyard_runtime::{History, Payloads};
use switchyard_test_servers::postgres::{Postgres, Sync};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::process::Process;
use crate::proxy::{Behaviour, Proxy, Target as Behind};
use crate::redis_pair::RedisPair;

const APIS: usize = 2;
const WORKERS: usize = 3;

/// Short, so that the tasks of a dead worker are reclaimed while the test still runs.
const LEASE: &str = "2s";
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time limit for a process to refuse a Redis that belongs to another archive.
const REFUSED_WITHIN: Duration = Duration::from_secs(20);
/// Time limit for an invalid entry of the outbox to become a dead letter once the stores answer again.
const BURIED_WITHIN: Duration = Duration::from_secs(30);

/// How many stalled runs are shown, and how much of each of their events.
const EXAMINED_MAX: usize = 3;
const EXCERPT_MAX: usize = 1_000;

/// Not a superuser, so that connection limits apply to it.
const ROLE: &str = "switchyard";

pub(crate) struct Deployment {
    binary: PathBuf,
    redis: RedisPair,
    postgres: Postgres,
    postgres_runs: bool,
    to_redis: Proxy,
    to_postgres: Proxy,
    ports: Vec<u16>,
    apis: Vec<Process>,
    workers: Vec<Process>,
    /// The logs of the processes, one file each.
    logs: TempDir,
    /// Violations that the faults themselves found.
    pub(crate) violations: Vec<String>,
}

impl Deployment {
    pub(crate) async fn start(binary: &Path) -> anyhow::Result<Self> {
        let (redis, postgres) = (RedisPair::start().await?, Postgres::start(Sync::Off));
        let role =
            [format!("CREATE ROLE {ROLE} LOGIN"), format!("GRANT CREATE ON DATABASE postgres TO {ROLE}")];
        postgres.psql("postgres", &[&role[0], &role[1]]).map_err(anyhow::Error::msg)?;
        let to_redis = Proxy::before(Behind::Socket(redis.socket())).await?;
        let to_postgres = Proxy::before(Behind::Port(postgres.port())).await?;
        let logs = tempfile::Builder::new().prefix("switchyard-chaos-").tempdir()?;
        let ports: Vec<u16> = (0..APIS).map(|_| free_port()).collect::<Result<_, _>>()?;
        let mut deployment = Self {
            binary: binary.to_owned(),
            violations: Vec::new(),
            redis,
            postgres,
            postgres_runs: true,
            to_redis,
            to_postgres,
            ports,
            apis: Vec::new(),
            workers: Vec::new(),
            logs,
        };
        deployment.start_processes(binary)?;
        deployment.until_apis_answer().await?;
        Ok(deployment)
    }

    fn start_processes(&mut self, binary: &Path) -> anyhow::Result<()> {
        for port in self.ports.clone() {
            let name = format!("api-{port}");
            let start = self.starter(binary, &name, &["api", "--listen", &format!("127.0.0.1:{port}")]);
            self.apis.push(Process::start(name, start)?);
        }
        for i in 0..WORKERS {
            let name = format!("worker-{i}");
            let start = self.starter(binary, &name, &["worker", "--slots", "8"]);
            self.workers.push(Process::start(name, start)?);
        }
        Ok(())
    }

    fn starter(&self, binary: &Path, name: &str, args: &[&str]) -> impl Fn() -> Command + Send + 'static {
        let log: PathBuf = self.logs.path().join(format!("{name}.log"));
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let redis = format!("redis://127.0.0.1:{}", self.to_redis.port);
        let postgres = self.postgres_url();
        let (binary, folder) = (binary.to_owned(), self.logs.path().to_owned());
        move || {
            let mut command = Command::new(&binary);
            command.args(&args).current_dir(&folder);
            command.env("REDIS_URL", &redis).env("SWITCHYARD_POSTGRES", &postgres);
            command.env("SWITCHYARD_WORKER_LEASE", LEASE);
            // Opened for appending: the output before a kill matters as well.
            let log = std::fs::File::options().create(true).append(true).open(&log);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(log.map_or_else(|_| Stdio::null(), Stdio::from));
            command
        }
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect()
    }

    pub(crate) fn api(&mut self, i: usize) -> &mut Process {
        &mut self.apis[i % APIS]
    }

    pub(crate) fn worker(&mut self, i: usize) -> &mut Process {
        &mut self.workers[i % WORKERS]
    }

    fn postgres_url(&self) -> String {
        format!("postgres://{ROLE}@127.0.0.1:{}/postgres", self.to_postgres.port)
    }

    pub(crate) fn redis(&mut self) -> &mut RedisPair {
        &mut self.redis
    }

    pub(crate) fn to_redis(&self) -> &Proxy {
        &self.to_redis
    }

    pub(crate) fn to_postgres(&self) -> &Proxy {
        &self.to_postgres
    }

    pub(crate) async fn fail_redis_over(&mut self) -> anyhow::Result<()> {
        self.redis.fail_over().await?;
        self.to_redis.lead_to(Behind::Socket(self.redis.socket()));
        Ok(())
    }

    pub(crate) fn stop_postgres(&mut self) {
        self.postgres_runs = false;
        self.postgres.stop();
    }

    /// Pauses Postgres. Returns the number of paused processes.
    pub(crate) fn pause_postgres(&self) -> u64 {
        self.postgres.pause() as u64
    }

    /// Terminates the Postgres connections, as an administrator does. Returns how many there were.
    pub(crate) fn kill_postgres_connections(&self) -> anyhow::Result<u64> {
        let kill =
            format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{ROLE}'");
        let killed = self.postgres.psql("postgres", &[&kill]).map_err(anyhow::Error::msg)?;
        Ok(killed.trim().parse()?)
    }

    /// Has Postgres refuse new connections, like a server that has too many.
    pub(crate) fn allow_no_postgres_connections(&self) -> anyhow::Result<()> {
        let limit = format!("ALTER ROLE {ROLE} CONNECTION LIMIT 0");
        self.postgres.psql("postgres", &[&limit]).map_err(anyhow::Error::msg)?;
        self.kill_postgres_connections().map(drop)
    }

    /// Starts a process with another archive, which must refuse to start on this Redis. Returns whether it did.
    pub(crate) async fn start_second_archive(&mut self) -> anyhow::Result<bool> {
        self.until_redis_is_bound().await?;
        let mut command = tokio::process::Command::new(&self.binary);
        command.arg("worker").current_dir(self.logs.path()).kill_on_drop(true);
        command.env("REDIS_URL", format!("redis://127.0.0.1:{}", self.to_redis.port));
        command.env("SWITCHYARD_POSTGRES", format!("{}?schema=second", self.postgres_url()));
        command.stdin(Stdio::null());
        let Ok(output) = tokio::time::timeout(REFUSED_WITHIN, command.output()).await else {
            self.violations.push("a process with a second archive went on".to_owned());
            return Ok(false);
        };
        let output = output?;
        let said = String::from_utf8_lossy(&output.stderr);
        let refused = output.status.code() == Some(3) && said.contains("belongs to archive");
        if !refused {
            let ended = output.status;
            self.violations.push(format!("a process with a second archive ended with {ended}: {said}"));
        }
        Ok(refused)
    }

    /// Adds an invalid entry to the outbox, which must become a dead letter and delay no other. Returns the number of
    /// new dead letters.
    pub(crate) async fn spoil_outbox(&mut self) -> anyhow::Result<u64> {
        let before = self.spoiled_entries()?;
        self.redis.operate("XADD wf.outbox * hello world").await?;
        let by = Instant::now() + BURIED_WITHIN;
        loop {
            let buried = self.spoiled_entries()? - before;
            if buried > 0 {
                return Ok(buried);
            }
            if Instant::now() > by {
                self.violations.push("an entry that makes no sense did not become a dead letter".to_owned());
                return Ok(0);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn spoiled_entries(&self) -> anyhow::Result<u64> {
        let count = "SELECT count(*) FROM switchyard.dead_letters WHERE kind = 'outbox_entry'";
        let counted = self.postgres.psql("postgres", &[count]).map_err(anyhow::Error::msg)?;
        Ok(counted.trim().parse()?)
    }

    /// Waits until the running processes have written their archive's id to a Redis that was flushed.
    async fn until_redis_is_bound(&mut self) -> anyhow::Result<()> {
        let by = Instant::now() + REFUSED_WITHIN;
        while self.redis.operate("HGET wf.archive id").await?.starts_with("$-1") {
            if Instant::now() > by {
                self.violations.push("no process told a flushed Redis its archive".to_owned());
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Undoes every fault: starts stopped processes, and continues paused ones.
    pub(crate) async fn revive(&mut self) -> anyhow::Result<()> {
        self.to_redis.behave(Behaviour::Through);
        self.to_postgres.behave(Behaviour::Through);
        self.redis.revive().await?;
        if !std::mem::replace(&mut self.postgres_runs, true) {
            self.postgres.start_again();
        }
        self.postgres.go_on();
        let unlimited = format!("ALTER ROLE {ROLE} CONNECTION LIMIT -1");
        self.postgres.psql("postgres", &[&unlimited]).map_err(anyhow::Error::msg)?;
        self.apis.iter_mut().chain(&mut self.workers).try_for_each(Process::revive)
    }

    /// Undoes every fault, and waits until the APIs answer.
    pub(crate) async fn heal(&mut self) -> anyhow::Result<()> {
        self.revive().await?;
        self.until_apis_answer().await
    }

    async fn until_apis_answer(&mut self) -> anyhow::Result<()> {
        let by = Instant::now() + Duration::from_secs(60);
        let http = reqwest::Client::builder().timeout(Duration::from_secs(5)).build()?;
        for address in self.addresses() {
            while !http.get(format!("{address}/readyz")).send().await.is_ok_and(|a| a.status().is_success()) {
                if Instant::now() > by {
                    bail!("{address} did not answer within a minute:\n{}", self.last_words());
                }
                // Restarts processes that exited because the stores did not answer yet.
                self.apis.iter_mut().chain(&mut self.workers).try_for_each(Process::revive)?;
                sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    /// Opens the archive directly.
    pub(crate) async fn history(&self) -> anyhow::Result<History> {
        let target: Target = self.postgres.url().parse()?;
        let archive = PostgresArchive::open(target.clone()).await?;
        let payloads = Payloads::new(Arc::new(PostgresCas::open(target).await?));
        Ok(History::new(Arc::new(archive), payloads))
    }

    /// Waits for every run to end, whether or not its submission was answered, as long as there is progress.
    pub(crate) async fn until_all_ended(&mut self, settle_timeout: Duration) -> anyhow::Result<()> {
        let history = self.history().await?;
        let mut before = Vec::new();
        let mut by = Instant::now() + settle_timeout;
        loop {
            let unfinished = history.unfinished().await.context("the archive cannot be read")?;
            if unfinished.is_empty() {
                return Ok(());
            }
            if unfinished != before {
                by = Instant::now() + settle_timeout;
            }
            if Instant::now() > by {
                let mut found = String::new();
                for unfinished in unfinished.iter().take(EXAMINED_MAX) {
                    found += &self.examine(&history, unfinished.run).await?;
                }
                bail!("{} runs stand still: {unfinished:?}\n{found}{}", unfinished.len(), self.last_words());
            }
            before = unfinished;
            sleep(LOOK_EVERY).await;
        }
    }

    /// Describes the data of a run in both stores, for the analysis of a failure.
    async fn examine(&self, history: &History, run: RunId) -> anyhow::Result<String> {
        let mut found = self.examine_one(history, run).await?;
        for event in history.events(run, 0, None).await? {
            // A child may have ended without its parent's knowledge.
            if let EventKind::ChildStarted { run: child, .. } = event.kind {
                found += &self.examine_one(history, child).await?;
            }
        }
        Ok(found)
    }

    async fn examine_one(&self, history: &History, run: RunId) -> anyhow::Result<String> {
        let mut found = format!("--- {run} in the archive\n");
        for event in history.events(run, 0, None).await? {
            let body: String = serde_json::to_string(&event.kind)?.chars().take(EXCERPT_MAX).collect();
            found += &format!("{} {} {body}\n", event.seq, event.at.as_millis());
        }
        for key in ["run", "dag"] {
            let record = self.redis.operate(&format!("HGETALL {key}:{run}")).await?;
            found += &format!("--- {key}:{run} in Redis\n{}\n", record.replace("\r\n", " "));
        }
        Ok(found)
    }

    /// The end of every log, for the analysis of a failure.
    fn last_words(&self) -> String {
        let names = self.apis.iter().chain(&self.workers).map(|process| &process.name);
        let tail = |name: &String| {
            let text =
                std::fs::read_to_string(self.logs.path().join(format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(15).collect();
            let lines: Vec<&str> = lines.into_iter().rev().collect();
            format!("--- {name}\n{}\n", lines.join("\n"))
        };
        names.map(tail).collect()
    }

    pub(crate) fn stop(&mut self) {
        self.workers.iter_mut().chain(&mut self.apis).for_each(Process::stop);
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
