//! Two Redis servers: one is used, the other follows it and can take over.

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
    /// The one that is used.
    primary: usize,
    runs: bool,
    /// The other one does not follow.
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

    /// Of the one that is used.
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

    /// Undoes whatever was done to them.
    pub(crate) async fn revive(&mut self) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.runs, true) {
            self.servers[self.primary].start_again();
        }
        self.operate("CONFIG SET maxmemory 0").await?;
        if self.apart { self.follow().await } else { Ok(()) }
    }

    /// Kills it and cuts the end off its append-only file, as a machine that stops does. How much was cut off; nothing is
    /// done while there is nothing to cut off.
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

    /// How much it has written to its append-only file, in bytes. The replication offset stands still while no replica
    /// has ever been in step with it.
    pub(crate) async fn written(&self) -> anyhow::Result<u64> {
        self.number(self.primary, "persistence", "aof_current_size:").await
    }

    /// How many commands were refused because there was no memory for them, since it was started.
    pub(crate) async fn refused_for_memory(&self) -> anyhow::Result<u64> {
        self.number(self.primary, "errorstats", "errorstat_OOM:count=").await
    }

    /// A number of `INFO`; 0 for what is not there.
    async fn number(&self, which: usize, section: &str, name: &str) -> anyhow::Result<u64> {
        let info = self.order(which, &format!("INFO {section}")).await?;
        let line = info.lines().find_map(|line| line.trim().strip_prefix(name));
        Ok(line.map_or(0, |number| number.parse().unwrap_or(0)))
    }

    /// Closes connections as an administrator does. How many.
    pub(crate) async fn kill_connections(&self) -> anyhow::Result<u64> {
        let answer = self.operate("CLIENT KILL TYPE normal").await?;
        Ok(answer.trim_start_matches(':').parse().unwrap_or(0))
    }

    /// The other one hears nothing any more.
    pub(crate) async fn leave_the_other_behind(&mut self) -> anyhow::Result<()> {
        self.apart = true;
        self.order(1 - self.primary, "REPLICAOF NO ONE").await.map(drop)
    }

    /// The one that is used dies, and the other takes over as it is.
    pub(crate) async fn fail_over(&mut self) -> anyhow::Result<()> {
        self.servers[self.primary].crash();
        self.servers[self.primary].start_again();
        self.primary = 1 - self.primary;
        self.follow().await
    }

    /// The one that is not used follows the other.
    async fn follow(&mut self) -> anyhow::Result<()> {
        let leader = format!("REPLICAOF 127.0.0.1 {}", self.ports[self.primary]);
        self.order(1 - self.primary, &leader).await?;
        self.apart = false;
        Ok(())
    }

    /// A command of an operator to the server in use.
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
