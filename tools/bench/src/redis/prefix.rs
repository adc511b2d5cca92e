//! The stores of one round: a prefix in Redis, and an archive.

use std::time::Duration;

use anyhow::Context;
use redis::IntoConnectionInfo;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use switchyard_archive_postgres::{Target, migrate, remove};
use switchyard_host::distributed::{ArchiveAt, Distributed, Options};
use switchyard_host::embedded::Notice;
use switchyard_observe::Observe;
use switchyard_runtime::duties::PlainSettings;
use switchyard_runtime::kinds::NodeSettings;
use switchyard_runtime::{Handlers, WorkerSettings};
use switchyard_store_redis::{CleanupPolicy, MonitorSettings, RedisSettings};

use super::Commits;
use crate::Args;
use crate::store::folder;

/// The default of `switchyard worker`.
const LEASE: Duration = Duration::from_secs(30);
/// Keys removed with one command.
const REMOVED_AT_ONCE: usize = 500;

/// Polling interval of `until_calm`.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The URL of a Redis. Its debug output hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAt(pub(crate) String);

impl std::fmt::Debug for RedisAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedisAt({self})")
    }
}

impl std::fmt::Display for RedisAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0.split_once("://"), self.0.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => write!(f, "{scheme}://{host}"),
            _ => f.write_str(&self.0),
        }
    }
}

/// No consumer disappears during a measurement, so the group is checked only once.
fn monitor_settings() -> MonitorSettings {
    let long = Duration::from_secs(3_600);
    let cleanup = CleanupPolicy { idle_min: long, dry_run: false, lock: LEASE, every: long };
    MonitorSettings { cleanup, long, watch_every: None }
}

/// The prefix and the archive of one round.
pub(crate) struct RedisPrefix {
    redis: RedisAt,
    pub(crate) prefix: String,
    archive: Kept,
}

enum Kept {
    Folder(tempfile::TempDir),
    Schema(Box<Target>),
}

impl RedisPrefix {
    /// Creates a prefix with SQLite in a new folder below `under`.
    #[cfg(test)]
    pub(crate) fn at(redis: &RedisAt, under: &std::path::Path) -> anyhow::Result<Self> {
        let archive = Kept::Folder(tempfile::tempdir_in(under)?);
        Ok(Self { redis: redis.clone(), prefix: format!("{:016x}:", rand::random::<u64>()), archive })
    }

    pub(crate) async fn make(redis: &RedisAt, args: &Args) -> anyhow::Result<Self> {
        let name = format!("switchyard_bench_{:016x}", rand::random::<u64>());
        let archive = match &args.archive {
            None => Kept::Folder(folder(args)?),
            Some(url) => {
                let target = url.parse::<Target>()?.with_schema(&name)?;
                migrate(&target).await?;
                Kept::Schema(Box::new(target))
            }
        };
        Ok(Self { redis: redis.clone(), prefix: format!("{name}:"), archive })
    }

    /// Opens the stores as one process does; with slots, it also works.
    pub(crate) async fn open(&self, slots: Option<usize>, handlers: Handlers) -> anyhow::Result<Distributed> {
        let archive = match &self.archive {
            Kept::Folder(folder) => ArchiveAt::Folder(folder.path().to_owned()),
            Kept::Schema(target) => ArchiveAt::Postgres(target.clone()),
        };
        let options = Options {
            redis: RedisSettings { prefix: self.prefix.clone(), ..RedisSettings::new(&self.redis.0) },
            archive,
            cas: None,
            worker: slots.map(|slots| WorkerSettings::distributed("bench", slots, LEASE)),
            nodes: NodeSettings::default(),
            handlers,
            retention: None,
            monitor: monitor_settings(),
            pods: None,
            plain: PlainSettings { lease: LEASE },
            observe: Observe::default(),
            notice: Notice::default(),
        };
        Distributed::open(options).await.context("the store could not be opened")
    }

    /// Plain commits in the archive's Postgres, if it has one.
    pub(crate) async fn commits(&self) -> anyhow::Result<Option<Commits>> {
        match &self.archive {
            Kept::Schema(target) => {
                let mut commits = Commits::at(target).await?;
                // The first commit connects, prepares, and inserts the row that the others renew.
                commits.make_one().await?;
                commits.times.clear();
                Ok(Some(commits))
            }
            Kept::Folder(_) => Ok(None),
        }
    }

    /// The environment for `switchyard worker`, if processes can share the archive.
    pub(crate) fn for_workers(&self, args: &Args) -> Option<Vec<(&'static str, String)>> {
        let Kept::Schema(target) = &self.archive else { return None };
        let url = args.archive.as_ref()?;
        let joint = if url.contains('?') { '&' } else { '?' };
        Some(vec![
            ("REDIS_URL", self.redis.0.clone()),
            ("SWITCHYARD_REDIS_PREFIX", self.prefix.clone()),
            ("SWITCHYARD_POSTGRES", format!("{url}{joint}schema={}", target.schema())),
        ])
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<MultiplexedConnection> {
        // The same settings as the store's connection.
        let settings = TcpSettings::default().set_nodelay(true);
        let client =
            redis::Client::open(self.redis.0.as_str().into_connection_info()?.set_tcp_settings(settings))?;
        let connected = client.get_multiplexed_async_connection().await;
        connected.with_context(|| format!("Redis at {} does not answer", self.redis))
    }

    /// The used memory of Redis, all prefixes together.
    pub(crate) async fn used_bytes(&self) -> anyhow::Result<f64> {
        let mut connection = self.connect().await?;
        let info: String = redis::cmd("INFO").arg("memory").query_async(&mut connection).await?;
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.and_then(|bytes| bytes.trim().parse().ok()).context("INFO has no used_memory")
    }

    /// Returns when every run waits for an external event, and all events are archived.
    pub(crate) async fn until_calm(&self) -> anyhow::Result<()> {
        let mut connection = self.connect().await?;
        let mut look = tokio::time::interval(LOOK_EVERY);
        let name = |name: &str| format!("{}{name}", self.prefix);
        let mut ask = redis::pipe();
        ask.atomic().cmd("HLEN").arg(name("wf.queued")).cmd("ZCARD").arg(name("wf.leases"));
        ask.cmd("XLEN").arg(name("wf.outbox"));
        while ask.query_async::<[u64; 3]>(&mut connection).await? != [0; 3] {
            look.tick().await;
        }
        Ok(())
    }

    /// Removes the keys and the archive of this round, and nothing else.
    pub(crate) async fn clear(self) -> anyhow::Result<()> {
        let mut connection = self.connect().await?;
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{}*", self.prefix)).arg("COUNT").arg(REMOVED_AT_ONCE);
            let (next, found): (u64, Vec<String>) = scan.query_async(&mut connection).await?;
            if !found.is_empty() {
                redis::cmd("UNLINK").arg(found).query_async::<()>(&mut connection).await?;
            }
            if next == 0 {
                break;
            }
            cursor = next;
        }
        if let Kept::Schema(target) = &self.archive {
            remove(target).await?;
        }
        Ok(())
    }
}
