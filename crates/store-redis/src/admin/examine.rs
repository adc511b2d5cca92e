//! Checks of a Redis for `switchyard doctor`.

use std::collections::HashMap;
use std::time::Duration;

use switchyard_store::{Check, Clock, StoreError, SystemClock};

use super::{ConsumerStatus, RedisAdmin};
use crate::keys::GROUP;
use crate::outbox::entries::{RawEntries, waited};
use crate::scripts;

/// A clock skew above `SKEW` is worth a warning; above `SKEW_MAX`, leases mean nothing.
const SKEW: Duration = Duration::from_secs(1);
const SKEW_MAX: Duration = Duration::from_secs(30);
/// The number of changes in the outbox that is worth a warning.
const OUTBOX: usize = 10_000;
/// The percentage of `maxmemory` from which Redis counts as nearly full.
const FULL_PERCENT: u64 = 90;

type Info = HashMap<String, String>;

impl RedisAdmin {
    /// Makes all checks of the server and of its workers.
    pub async fn examine(&self, idle_min: Duration, long: Duration, stuck_after: Duration) -> Vec<Check> {
        let mut checks = Vec::new();
        match self.info().await {
            Ok(info) => {
                checks.extend([version(&info), role(&info), eviction(&info), memory(&info), aof(&info)]);
            }
            Err(error) => checks.push(Check::failed("redis info", error, "the account needs INFO")),
        }
        checks.push(
            self.clock_skew()
                .await
                .unwrap_or_else(|error| Check::failed("redis clock", error, "the account needs TIME")),
        );
        checks.push(self.script_load().await);
        checks.push(self.rights().await);
        checks.push(self.group_state(idle_min, long).await.unwrap_or_else(|error| {
            Check::failed("redis group", error, "the account needs XINFO and XPENDING")
        }));
        checks.push(
            self.outbox_state(stuck_after).await.unwrap_or_else(|error| {
                Check::failed("redis outbox", error, "the account needs XLEN, XRANGE")
            }),
        );
        checks
    }

    async fn info(&self) -> Result<Info, StoreError> {
        let text: String = self.client.query(&redis::cmd("INFO")).await?;
        let pair = |line: &str| {
            line.trim_end().split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    async fn clock_skew(&self) -> Result<Check, StoreError> {
        let before = SystemClock.now();
        let (seconds, micros): (i64, i64) = self.client.query(&redis::cmd("TIME")).await?;
        let (after, theirs) = (SystemClock.now(), seconds * 1_000 + micros / 1_000);
        // A server time within the round trip counts as no skew.
        let off = (theirs - after.as_millis()).max(before.as_millis() - theirs).max(0);
        let off = Duration::from_millis(off.unsigned_abs());
        let found = format!("within {} ms of this machine", off.as_millis());
        Ok(match off {
            off if off > SKEW_MAX => {
                Check::failed("redis clock", found, "set both clocks by the same source (NTP)")
            }
            off if off > SKEW => {
                Check::warning("redis clock", found, "set both clocks by the same source (NTP)")
            }
            _ => Check::ok("redis clock", found),
        })
    }

    async fn script_load(&self) -> Check {
        let scripts = scripts::all();
        for (name, script) in &scripts {
            let loaded: Result<String, _> = self.client.query(&script.load_command()).await;
            match loaded {
                Ok(hash) if hash == script.hash() => {}
                Ok(_) => {
                    return Check::failed("redis scripts", format!("{name} has another hash there"), PLAIN);
                }
                Err(error) => return Check::failed("redis scripts", format!("{name}: {error}"), PLAIN),
            }
        }
        Check::ok("redis scripts", format!("{} load", scripts.len()))
    }

    /// Tries every command that scripts use, on temporary keys.
    async fn rights(&self) -> Check {
        let key =
            |kind: &str| format!("{}wf.doctor:{kind}:{:016x}", self.keys.begin(), rand::random::<u64>());
        let (text, hash, set, zset, stream) =
            (key("text"), key("hash"), key("set"), key("zset"), key("stream"));
        let lines = [
            format!("SET {text} 1 NX"),
            format!("GET {text}"),
            format!("PEXPIRE {text} 60000"),
            format!("PERSIST {text}"),
            format!("PTTL {text}"),
            format!("EXISTS {text}"),
            format!("HSET {hash} f 1"),
            format!("HINCRBY {hash} f 1"),
            format!("HMGET {hash} f"),
            format!("HGETALL {hash}"),
            format!("HDEL {hash} f"),
            format!("SADD {set} 1"),
            format!("SMEMBERS {set}"),
            format!("SISMEMBER {set} 1"),
            format!("SCARD {set}"),
            format!("SREM {set} 1"),
            format!("ZADD {zset} 1 m"),
            format!("ZSCORE {zset} m"),
            format!("ZCOUNT {zset} 0 2"),
            format!("ZRANGEBYSCORE {zset} 0 2"),
            format!("ZRANGE {zset} 0 -1"),
            format!("ZREMRANGEBYSCORE {zset} 5 6"),
            format!("ZREM {zset} m"),
            format!("XADD {stream} 1-1 f v"),
            format!("XGROUP CREATE {stream} {GROUP} 0"),
            format!("XREADGROUP GROUP {GROUP} doctor COUNT 1 STREAMS {stream} >"),
            format!("XPENDING {stream} {GROUP} - + 1"),
            format!("XCLAIM {stream} {GROUP} other 0 1-1 JUSTID"),
            format!("XINFO CONSUMERS {stream} {GROUP}"),
            format!("XRANGE {stream} - +"),
            format!("XREVRANGE {stream} + -"),
            format!("XACK {stream} {GROUP} 1-1"),
            format!("XDEL {stream} 1-1"),
            format!("XTRIM {stream} MINID 1-1"),
            format!("XLEN {stream}"),
            format!("XGROUP DELCONSUMER {stream} {GROUP} other"),
            format!("PUBLISH {} doctor", self.keys.wake()),
            format!("DEL {text} {hash} {set}"),
            format!("UNLINK {zset} {stream}"),
        ];
        let mut refused = Vec::new();
        for line in &lines {
            let mut words = line.split(' ');
            let name = words.next().unwrap_or_default();
            let command = redis::cmd(name).arg(words.collect::<Vec<_>>()).to_owned();
            if let Err(error) = self.client.query::<redis::Value>(&command).await {
                refused.push(format!("{name} ({error})"));
            }
        }
        match &refused[..] {
            [] => Check::ok("redis rights", format!("{} commands are allowed", lines.len())),
            _ => Check::failed("redis rights", format!("refused: {}", refused.join(", ")), RIGHTS),
        }
    }

    async fn group_state(&self, idle_min: Duration, long: Duration) -> Result<Check, StoreError> {
        let alive = self.workers().await?.iter().filter(|worker| worker.alive).count();
        let consumers = self.consumers(idle_min, None).await?;
        let ghosts = consumers.iter().filter(|consumer| consumer.standing == ConsumerStatus::Ghost).count();
        let pending = self.long_pending(long).await?.entries.len();
        let members = consumers.len();
        let found = format!(
            "{alive} workers alive, {members} consumers, {ghosts} ghosts, {pending} entries pending for long"
        );
        Ok(match (alive, ghosts, pending) {
            (_, 1.., _) => {
                Check::warning("redis group", found, "`switchyard consumers cleanup` takes ghosts out")
            }
            (_, _, 1..) => Check::warning("redis group", found, "`switchyard consumers` shows who has them"),
            (0, ..) => {
                Check::warning("redis group", found, "start one: `switchyard worker` or `switchyard up`")
            }
            _ => Check::ok("redis group", found),
        })
    }

    async fn outbox_state(&self, stuck_after: Duration) -> Result<Check, StoreError> {
        let outbox = self.keys.outbox();
        let mut ask = redis::pipe();
        ask.cmd("XLEN").arg(&outbox);
        ask.cmd("XRANGE").arg(&outbox).arg("-").arg("+").arg("COUNT").arg(1);
        ask.cmd("TIME");
        ask.cmd("HGET").arg(self.keys.archive()).arg("error");
        let answers: (usize, RawEntries, (u64, u64), Option<String>) = self.client.query_all(&ask).await?;
        let (length, oldest, now, error) = answers;
        let waited = waited(&oldest, now);
        let mut found = format!("{length} changes on their way to the archive");
        if let Some(error) = &error {
            found = format!("{found}; the last attempt failed: {error}");
        }
        if waited >= stuck_after {
            found = format!("stuck: the oldest of {found}, since {} s", waited.as_secs());
            return Ok(Check::failed("redis outbox", found, OUTBOX_ADVICE));
        }
        Ok(match (length, error) {
            (0..OUTBOX, None) => Check::ok("redis outbox", found),
            _ => Check::warning("redis outbox", found, OUTBOX_ADVICE),
        })
    }
}

const OUTBOX_ADVICE: &str =
    "is a process of `up`, `api` or `worker` running, and can it reach and write to the archive?";
const PLAIN: &str =
    "Redis 7 or newer, or Valkey, with Lua scripts allowed (the account needs SCRIPT and EVALSHA)";
const RIGHTS: &str = "allow them; docs/operating/redis.md has a user with few rights that has these";

fn number(info: &Info, field: &str) -> u64 {
    info.get(field).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn text<'i>(info: &'i Info, field: &str) -> &'i str {
    info.get(field).map_or("", String::as_str)
}

/// Reports the server's version. Connecting already refuses versions that are too old.
fn version(info: &Info) -> Check {
    match info.get("valkey_version") {
        Some(valkey) => Check::ok("redis version", format!("Valkey {valkey}")),
        None => Check::ok("redis version", text(info, "redis_version")),
    }
}

fn role(info: &Info) -> Check {
    match text(info, "role") {
        "master" => Check::ok("redis role", "it takes writes"),
        other => Check::failed(
            "redis role",
            format!("it is a {other}"),
            "name the primary, or a Sentinel that knows it",
        ),
    }
}

fn eviction(info: &Info) -> Check {
    let policy = text(info, "maxmemory_policy");
    let advice = "CONFIG SET maxmemory-policy noeviction, and in redis.conf: anything else drops live runs when memory is short";
    match (policy, number(info, "maxmemory")) {
        ("noeviction", _) => Check::ok("redis eviction", policy),
        (_, 0) => Check::warning("redis eviction", format!("{policy}, without maxmemory so far"), advice),
        _ => Check::failed("redis eviction", policy, advice),
    }
}

fn memory(info: &Info) -> Check {
    let (used, max) = (number(info, "used_memory"), number(info, "maxmemory"));
    let found = match max {
        0 => format!("{} MiB used, no maxmemory", used >> 20),
        max => format!("{} of {} MiB used", used >> 20, max >> 20),
    };
    match max {
        1.. if used.saturating_mul(100) >= max.saturating_mul(FULL_PERCENT) => {
            Check::warning("redis memory", found, "when it is full, submissions are refused: raise maxmemory")
        }
        _ => Check::ok("redis memory", found),
    }
}

fn aof(info: &Info) -> Check {
    match (text(info, "aof_enabled"), text(info, "aof_last_write_status")) {
        ("1", "ok" | "") => Check::ok("redis append-only file", "on"),
        ("1", _) => Check::failed(
            "redis append-only file",
            "the last write failed",
            "look at the disk of Redis and its log",
        ),
        _ => Check::warning(
            "redis append-only file",
            "off",
            "CONFIG SET appendonly yes, and in redis.conf: without it a restart repeats every step in flight",
        ),
    }
}
