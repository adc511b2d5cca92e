//! Two Redis servers: a primary, and a replica that can take over.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use switchyard_test_servers::free_port;
use switchyard_test_servers::redis::Redis;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

pub(crate) struct RedisPair {
    servers: [Redis; 2],
    ports: [u16; 2],
    /// The index of the server in use.
    primary: usize,
    runs: bool,
    /// Whether the other server does not replicate.
    apart: bool,
}

impl RedisPair {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let ports = [free_port(), free_port()];
        let servers = ports.map(|port| Redis::with_options(|_| vec!["--port".to_owned(), port.to_string()]));
        let mut pair = Self { servers, ports, primary: 0, runs: true, apart: false };
        pair.follow().await?;
        Ok(pair)
    }

    /// The socket of the server in use.
    pub(crate) fn socket(&self) -> PathBuf {
        self.servers[self.primary].socket()
    }

    pub(crate) fn stop(&mut self) {
        self.runs = false;
        self.servers[self.primary].stop();
    }

    pub(crate) fn kill(&mut self) {
        self.runs = false;
        self.servers[self.primary].crash();
    }

    /// Undoes all faults of the two servers.
    pub(crate) async fn revive(&mut self) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.runs, true) {
            self.servers[self.primary].start_again();
        }
        self.operate("CONFIG SET maxmemory 0").await?;
        if self.apart { self.follow().await } else { Ok(()) }
    }

    /// Kills the primary and cuts the end off its append-only file, like a machine that crashes. Returns the number
    /// of cut bytes; does nothing if there is nothing to cut.
    pub(crate) fn kill_and_cut_tail(&mut self, bytes: u64) -> anyhow::Result<u64> {
        let folder = self.servers[self.primary].folder().join("appendonlydir");
        let files = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
        let newest = files
            .filter(|path| path.to_string_lossy().ends_with(".incr.aof"))
            .max_by_key(|path| fs::metadata(path).and_then(|about| about.modified()).ok())
            .context("there is no append-only file")?;
        let file = fs::File::options().write(true).open(newest)?;
        if file.metadata()?.len() == 0 {
            return Ok(0);
        }
        self.kill();
        let length = file.metadata()?.len();
        let kept = length.saturating_sub(bytes);
        file.set_len(kept)?;
        Ok(length - kept)
    }

    /// The size of the primary's append-only file in bytes. The replication offset does not advance while no replica
    /// has ever been in sync.
    pub(crate) async fn written(&self) -> anyhow::Result<u64> {
        self.number(self.primary, "persistence", "aof_current_size:").await
    }

    /// Number of commands that the primary refused for lack of memory, since it was started.
    pub(crate) async fn refused_for_memory(&self) -> anyhow::Result<u64> {
        self.number(self.primary, "errorstats", "errorstat_OOM:count=").await
    }

    /// A number of `INFO`; 0 if it is missing.
    async fn number(&self, which: usize, section: &str, name: &str) -> anyhow::Result<u64> {
        let info = self.order(which, &format!("INFO {section}")).await?;
        let line = info.lines().find_map(|line| line.trim().strip_prefix(name));
        Ok(line.map_or(0, |number| number.parse().unwrap_or(0)))
    }

    /// Closes connections as an administrator does. Returns how many.
    pub(crate) async fn kill_connections(&self) -> anyhow::Result<u64> {
        let answer = self.operate("CLIENT KILL TYPE normal").await?;
        Ok(answer.trim_start_matches(':').parse().unwrap_or(0))
    }

    /// Stops the replication to the other server.
    pub(crate) async fn leave_the_other_behind(&mut self) -> anyhow::Result<()> {
        self.apart = true;
        self.order(1 - self.primary, "REPLICAOF NO ONE").await.map(drop)
    }

    /// Kills the primary, and makes the other server the primary with the data that it has.
    pub(crate) async fn fail_over(&mut self) -> anyhow::Result<()> {
        self.servers[self.primary].crash();
        self.servers[self.primary].start_again();
        self.primary = 1 - self.primary;
        self.follow().await
    }

    /// Makes the other server replicate the primary.
    async fn follow(&mut self) -> anyhow::Result<()> {
        let leader = format!("REPLICAOF 127.0.0.1 {}", self.ports[self.primary]);
        self.order(1 - self.primary, &leader).await?;
        self.apart = false;
        Ok(())
    }

    /// Sends an operator's command to the server in use.
    pub(crate) async fn operate(&self, line: &str) -> anyhow::Result<String> {
        self.order(self.primary, line).await
    }

    async fn order(&self, which: usize, line: &str) -> anyhow::Result<String> {
        let mut connection = UnixStream::connect(self.servers[which].socket()).await?;
        connection.write_all(format!("{line}\r\n").as_bytes()).await?;
        let mut answer = vec![0; 4_096];
        let read = connection.read(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer[..read]).trim().to_owned();
        if answer.starts_with('-') {
            bail!("Redis did not carry out `{line}`: {answer}");
        }
        Ok(answer)
    }
}
