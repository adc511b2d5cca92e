//! Lists threads. There is no index of threads: the keys are scanned, on every server.

use redis::{Cmd, Value};

use crate::error::Error;
use crate::reply;
use crate::store::Checkpoints;

/// A summary of a thread.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ThreadInfo {
    pub thread: String,
    pub checkpoints: u64,
    pub namespaces: u64,
    pub values: u64,
    /// Tasks with pending writes.
    pub tasks: u64,
    /// The memory of the thread's keys, as Redis estimates it.
    pub bytes: u64,
    /// When the thread was last written to, in milliseconds, by the server's clock.
    pub at_ms: i64,
    /// The remaining lifetime; `None` if the thread does not expire.
    pub ttl_ms: Option<u64>,
    /// Whether all keys of the thread expire together.
    pub is_ttl_even: bool,
    pub format: String,
}

/// Allowed difference between the TTLs of a thread's keys: they may be read a moment apart.
const TTL_SPREAD_MS: i64 = 5_000;

impl Checkpoints {
    /// The ids of all threads, unordered. Not a snapshot: a thread that is created or deleted meanwhile may be
    /// missing or included.
    pub async fn thread_ids(&self) -> Result<Vec<String>, Error> {
        let mut found = std::collections::HashSet::new();
        for (node, first) in self.client.send_everywhere(&self.scan("0")).await? {
            let mut page = first;
            loop {
                let (cursor, keys) = scanned(page).unwrap_or_default();
                found.extend(keys.iter().filter_map(|key| self.space.thread_of(key)));
                if cursor == "0" || cursor.is_empty() {
                    break;
                }
                page = self.client.send_to(&node, &self.scan(&cursor)).await?;
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The ids of all threads with the time of their last write, latest first.
    pub async fn threads_by_time(&self) -> Result<Vec<(String, i64)>, Error> {
        let mut threads = Vec::new();
        for thread in self.thread_ids().await? {
            let cmd = command("HGET", [self.space.thread(&thread).meta(), "at"]);
            if let Some(at_ms) = reply::integer(&self.send(&thread, &cmd).await?) {
                threads.push((thread, at_ms));
            }
        }
        threads.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        Ok(threads)
    }

    fn scan(&self, cursor: &str) -> Cmd {
        let mut cmd = Cmd::new();
        cmd.arg("SCAN").arg(cursor).arg("MATCH").arg(self.space.pattern()).arg("COUNT").arg(1_000);
        cmd
    }

    /// The summary of a thread; `None` if there is no such thread.
    pub async fn thread_info(&self, thread: &str) -> Result<Option<ThreadInfo>, Error> {
        let keys = self.space.thread(thread);
        let mut cmds = vec![command("HMGET", [keys.meta(), "format", "at"])];
        cmds.push(command("ZRANGE", [keys.index(), "0", "-1"]));
        cmds.push(command("HLEN", [keys.blobs()]));
        cmds.push(command("HLEN", [keys.writes()]));
        keys.all().iter().for_each(|key| cmds.push(command("PTTL", [key.as_str()])));
        keys.all().iter().for_each(|key| cmds.push(command("MEMORY", ["USAGE", key.as_str()])));
        let answers = self.send_all(thread, &cmds).await?;
        let numbers: Vec<i64> = answers.iter().map(|answer| reply::integer(answer).unwrap_or(0)).collect();
        let mut answers = answers.into_iter();
        let mut meta = answers.next().and_then(reply::list).unwrap_or_default().into_iter();
        let Some(format) = meta.next().and_then(reply::text) else { return Ok(None) };
        let at_ms = meta.next().as_ref().and_then(reply::integer).unwrap_or(0);
        let members = answers.next().and_then(reply::texts).unwrap_or_default();
        let mut namespaces: Vec<&str> =
            members.iter().filter_map(|member| member.split('/').next()).collect();
        namespaces.dedup();
        let lives: Vec<i64> = numbers[4..11].iter().copied().filter(|ttl| *ttl != -2).collect();
        let (least, most) =
            (lives.iter().min().copied().unwrap_or(-1), lives.iter().max().copied().unwrap_or(-1));
        Ok(Some(ThreadInfo {
            thread: thread.to_owned(),
            checkpoints: members.len() as u64,
            namespaces: namespaces.len() as u64,
            values: unsigned(numbers[2]),
            tasks: unsigned(numbers[3]),
            bytes: unsigned(numbers[11..].iter().sum()),
            at_ms,
            ttl_ms: u64::try_from(lives.first().copied().unwrap_or(-1)).ok(),
            is_ttl_even: least == most || (least >= 0 && most - least < TTL_SPREAD_MS),
            format,
        }))
    }
}

fn command<const N: usize>(name: &str, args: [&str; N]) -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg(name).arg(&args);
    cmd
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn scanned(page: Value) -> Option<(String, Vec<String>)> {
    let [cursor, keys] = reply::list(page)?.try_into().ok()?;
    Some((reply::text(cursor)?, reply::texts(keys)?))
}
