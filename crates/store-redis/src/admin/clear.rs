//! Removes all keys of Switchyard from a Redis, so that it can be rebuilt from an archive.

use std::time::Duration;

use switchyard_core::RunId;
use switchyard_store::{Clock, StoreError, SystemClock};

use super::RedisAdmin;
use super::archive::Bound;
use crate::binding::REBUILDING;
use crate::keys::BANDS;

/// About how many keys one scan returns.
const AT_ONCE: usize = 1_000;

/// A summary of the contents of a Redis, shown to a person before they are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holdings {
    pub bound: Option<Bound>,
    pub runs: usize,
    /// The number of changes that no archive has.
    pub unarchived: usize,
    /// The names of workers that are alive.
    pub workers: Vec<String>,
    /// How long the shipper's lock still lasts, if there is one: a process ships the outbox, or was killed recently.
    pub shipping: Option<Duration>,
}

/// Whether a key belongs to Switchyard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Ours,
    NotOurs,
    /// Other programs may use such a name: the key is ours if it is a hash with these fields.
    OursIfItHas(&'static [&'static str]),
    /// Other programs may use such a name: the key is ours if it is a sorted set of runs.
    OursIfOfRuns,
}

impl RedisAdmin {
    pub async fn holdings(&self) -> Result<Holdings, StoreError> {
        let workers = self.workers().await?;
        let mut ask = redis::pipe();
        ask.cmd("SCARD").arg(self.keys.runs());
        ask.cmd("XLEN").arg(self.keys.outbox());
        ask.cmd("PTTL").arg(self.keys.ship_lock());
        let (runs, unarchived, lock): (usize, usize, i64) = self.client.query_all(&ask).await?;
        Ok(Holdings {
            bound: self.bound().await?,
            runs,
            unarchived,
            workers: workers.into_iter().filter(|worker| worker.alive).map(|worker| worker.name).collect(),
            shipping: u64::try_from(lock).ok().map(Duration::from_millis),
        })
    }

    /// Removes all keys except the fencing numbers of locks, which must not repeat. Returns how many. Meanwhile this
    /// Redis is marked as being rebuilt, and no process starts on it; after an interruption, the mark stays until the
    /// next call.
    pub async fn clear(&self) -> Result<usize, StoreError> {
        let since = format!("a rebuild that began at {}", SystemClock.now());
        let mut bind = redis::cmd("HSET");
        bind.arg(self.keys.archive()).arg("id").arg(REBUILDING).arg("place").arg(since);
        self.client.query::<u64>(&bind).await?;
        let mut removed = 0;
        let mut cursor = None;
        while cursor != Some(0) {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor.unwrap_or(0)).arg("MATCH").arg(format!("{}*", escaped(self.keys.begin())));
            scan.arg("COUNT").arg(AT_ONCE);
            let (next, found): (u64, Vec<Vec<u8>>) = self.client.query(&scan).await?;
            let mut ours = Vec::new();
            for key in found {
                if self.is_ours(&key).await? {
                    ours.push(key);
                }
            }
            if !ours.is_empty() {
                removed += self.client.query::<usize>(redis::cmd("UNLINK").arg(ours)).await?;
            }
            cursor = Some(next);
        }
        self.client.query::<usize>(redis::cmd("UNLINK").arg(self.keys.archive())).await?;
        Ok(removed)
    }

    async fn is_ours(&self, key: &[u8]) -> Result<bool, StoreError> {
        let Some(name) = key.strip_prefix(self.keys.begin().as_bytes()) else { return Ok(false) };
        match whose(&String::from_utf8_lossy(name)) {
            Whose::Ours => Ok(true),
            Whose::NotOurs => Ok(false),
            Whose::OursIfItHas(fields) => {
                if self.kind(key).await? != "hash" {
                    return Ok(false);
                }
                let ask = redis::cmd("HMGET").arg(key).arg(fields).to_owned();
                let there: Vec<Option<Vec<u8>>> = self.client.query(&ask).await?;
                Ok(there.iter().all(Option::is_some))
            }
            Whose::OursIfOfRuns => {
                if self.kind(key).await? != "zset" {
                    return Ok(false);
                }
                let ask = redis::cmd("ZRANGE").arg(key).arg(0).arg(0).to_owned();
                let first: Vec<Vec<u8>> = self.client.query(&ask).await?;
                Ok(first.first().is_some_and(|first| is_run(&String::from_utf8_lossy(first))))
            }
        }
    }

    async fn kind(&self, key: &[u8]) -> Result<String, StoreError> {
        self.client.query(redis::cmd("TYPE").arg(key)).await
    }
}

/// Whether a name, without its prefix, is one that `keys.rs` builds.
fn whose(name: &str) -> Whose {
    const FIXED: [&str; 14] = [
        "wf.graphs",
        "wf.runs",
        "wf.cancels",
        "wf.queued",
        "wf.ready",
        "wf.outbox",
        "wf.timers",
        "wf.leases",
        "wf.forgotten",
        "wf.streams",
        "wf.workers",
        "wf.probe",
        "completion_signals",
        "completion_signals:movers",
    ];
    let begins = |begin: &str| name.strip_prefix(begin);
    if FIXED.contains(&name) || BANDS.iter().any(|band| name.starts_with(band)) {
        return Whose::Ours;
    }
    if begins("completion_signals:processing:").is_some() {
        return Whose::Ours;
    }
    if let Some(lock) = begins("wf.lock:") {
        return if lock.ends_with(":fence") { Whose::NotOurs } else { Whose::Ours };
    }
    if let Some(run) = begins("run:") {
        return if is_run(run) { Whose::Ours } else { Whose::NotOurs };
    }
    let of_runs = ["dag:", "context:", "operations:", "children:", "ready:", "task:"]
        .iter()
        .find_map(|begin| begins(begin));
    if let Some(run) = of_runs.and_then(|rest| rest.split(':').next()) {
        return if is_run(run) { Whose::Ours } else { Whose::NotOurs };
    }
    if let Some(hash) = begins("ir:").or(begins("definition:")) {
        let is_hash = hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        return if is_hash { Whose::Ours } else { Whose::NotOurs };
    }
    match name.split_once(':').map(|(kind, _)| kind) {
        Some("worker") => Whose::OursIfItHas(&["types", "slots", "at"]),
        Some("approval") => Whose::OursIfItHas(&["run_id", "node_id"]),
        Some("gate") => Whose::OursIfItHas(&["limit", "version"]),
        Some("idempotency") => Whose::OursIfItHas(&["run", "body"]),
        Some("gate.line") => Whose::OursIfOfRuns,
        _ => Whose::NotOurs,
    }
}

fn is_run(text: &str) -> bool {
    text.parse::<RunId>().is_ok()
}

/// Escapes a prefix for use in a pattern of `SCAN`.
fn escaped(prefix: &str) -> String {
    let mut escaped = String::new();
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_keep_is_not_ours() {
        for name in
            ["run:7", "task:all", "ir:x", "definition:", "lg:default:thread:1", "wf.mine", "session:1"]
        {
            assert_eq!(whose(name), Whose::NotOurs, "{name}");
        }
        assert_eq!(whose("wf.lock:outbox:fence"), Whose::NotOurs, "its number never comes twice");
        assert_eq!(whose("run:run_01h455vb4pex5vsknk084sn02q"), Whose::Ours);
        assert_eq!(whose("operations:run_01h455vb4pex5vsknk084sn02q"), Whose::Ours);
        assert_eq!(whose("children:run_01h455vb4pex5vsknk084sn02q:each:staged:7"), Whose::Ours);
    }

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(escaped("a*[b]:"), "a\\*\\[b\\]:");
    }
}
