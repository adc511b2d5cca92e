//! The processes: two APIs, three workers, Redis and Postgres behind proxies.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use switchyard_archive_postgres::{PostgresArchive, PostgresCas, Target};
use switchyard_runtime::{History, Payloads};
use switchyard_test_servers::postgres::{Postgres, Sync};
use switchyard_test_servers::redis::Redis;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::process::Process;
use crate::proxy::{Proxy, Target as Behind};

const APIS: usize = 2;
const WORKERS: usize = 3;

/// Short, so that what a dead worker held comes back while the test still runs.
const LEASE: &str = "2s";
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Deployment {
    redis: Redis,
    redis_runs: bool,
    postgres: Postgres,
    postgres_runs: bool,
    to_redis: Proxy,
    to_postgres: Proxy,
    ports: Vec<u16>,
    apis: Vec<Process>,
    workers: Vec<Process>,
    /// What the processes have to say, one file each.
    logs: TempDir,
}

impl Deployment {
    pub(crate) async fn start(binary: &Path) -> anyhow::Result<Self> {
        let (redis, postgres) = (Redis::start(), Postgres::start(Sync::Off));
        let to_redis = Proxy::before(Behind::Socket(redis.socket())).await?;
        let to_postgres = Proxy::before(Behind::Port(postgres.port())).await?;
        let logs = tempfile::Builder::new().prefix("switchyard-chaos-").tempdir()?;
        let ports: Vec<u16> = (0..APIS).map(|_| free_port()).collect::<Result<_, _>>()?;
        let mut deployment = Self {
            redis,
            redis_runs: true,
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
        let postgres = format!("postgres://postgres@127.0.0.1:{}/postgres", self.to_postgres.port);
        let (binary, folder) = (binary.to_owned(), self.logs.path().to_owned());
        move || {
            let mut command = Command::new(&binary);
            command.args(&args).current_dir(&folder);
            command.env("REDIS_URL", &redis).env("SWITCHYARD_POSTGRES", &postgres);
            command.env("SWITCHYARD_WORKER_LEASE", LEASE);
            // Appended: what it said before it was killed matters as well.
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

    pub(crate) fn stop_redis(&mut self) {
        self.redis_runs = false;
        self.redis.stop();
    }

    pub(crate) fn kill_redis(&mut self) {
        self.redis_runs = false;
        self.redis.crash();
    }

    pub(crate) fn stop_postgres(&mut self) {
        self.postgres_runs = false;
        self.postgres.stop();
    }

    pub(crate) fn cut_redis(&self) {
        self.to_redis.cut();
    }

    pub(crate) fn cut_postgres(&self) {
        self.to_postgres.cut();
    }

    /// `FLUSHALL`, as an operator with redis-cli would.
    pub(crate) async fn flush_redis(&self) -> anyhow::Result<()> {
        let mut connection = UnixStream::connect(self.redis.socket()).await?;
        connection.write_all(b"FLUSHALL\r\n").await?;
        let mut answer = [0; 5];
        connection.read_exact(&mut answer).await?;
        if &answer != b"+OK\r\n" {
            bail!("Redis did not flush: {}", String::from_utf8_lossy(&answer));
        }
        Ok(())
    }

    /// Starts stopped processes, and continues paused ones.
    pub(crate) fn revive(&mut self) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.redis_runs, true) {
            self.redis.start_again();
        }
        if !std::mem::replace(&mut self.postgres_runs, true) {
            self.postgres.start_again();
        }
        self.apis.iter_mut().chain(&mut self.workers).try_for_each(Process::revive)
    }

    /// Everything runs, and answers.
    pub(crate) async fn heal(&mut self) -> anyhow::Result<()> {
        self.revive()?;
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
                // One that gave up because nothing answered it yet is started again.
                self.apis.iter_mut().chain(&mut self.workers).try_for_each(Process::revive)?;
                sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    /// What is in the archive, read directly.
    pub(crate) async fn history(&self) -> anyhow::Result<History> {
        let target: Target = self.postgres.url().parse()?;
        let archive = PostgresArchive::open(target.clone()).await?;
        let payloads = Payloads::new(Arc::new(PostgresCas::open(target).await?));
        Ok(History::new(Arc::new(archive), payloads))
    }

    /// Waits for every run to end, whether or not its submission was answered, as long as anything happens.
    pub(crate) async fn until_all_ended(&mut self, settle_timeout: Duration) -> anyhow::Result<()> {
        let history = self.history().await?;
        let mut before = Vec::new();
        let mut by = Instant::now() + settle_timeout;
        loop {
            let unfinished = history.archive().unfinished().await.context("the archive cannot be read")?;
            if unfinished.is_empty() {
                return Ok(());
            }
            if unfinished != before {
                by = Instant::now() + settle_timeout;
            }
            if Instant::now() > by {
                bail!("{} runs stand still: {unfinished:?}\n{}", unfinished.len(), self.last_words());
            }
            before = unfinished;
            sleep(LOOK_EVERY).await;
        }
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
