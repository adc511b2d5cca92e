//! Lists the consumers of the streams of tasks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use serde::Serialize;
use switchyard_core::ir::queue_name::FUNCTION;
use switchyard_store::StoreError;

use super::{RedisAdmin, unreadable};
use crate::keys::{BANDS, GROUP};
use crate::plain::TAKER;

/// The status of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsumerStatus {
    /// Its worker reports, or its pod exists.
    Alive,
    /// No worker of this name reports, but the consumer has read lately: plain workers do not report.
    Unknown,
    /// No worker of this name reports, and the consumer has not read for long.
    Ghost,
}

/// A consumer of one stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Consumer {
    pub name: String,
    pub stream: String,
    pub queue: Arc<str>,
    pub priority: &'static str,
    /// The number of entries that it has read and that are not settled.
    pub pending: usize,
    /// The time since it last read or tried to read.
    pub idle_ms: u64,
    pub standing: ConsumerStatus,
}

impl RedisAdmin {
    /// The consumers of every stream. A consumer whose name is in `pods` is alive.
    pub async fn consumers(
        &self,
        idle_min: Duration,
        pods: Option<&BTreeSet<String>>,
    ) -> Result<Vec<Consumer>, StoreError> {
        let streams = self.streams().await?;
        let alive: BTreeSet<String> = self
            .workers()
            .await?
            .into_iter()
            .filter(|worker| worker.alive)
            .map(|worker| worker.name)
            .collect();
        let mut members = Vec::new();
        for stream in streams {
            for (name, pending, idle_ms) in self.members(&stream).await? {
                let incarnations = alive.contains(&name) || pods.is_some_and(|pods| pods.contains(&name));
                let standing = match incarnations {
                    true => ConsumerStatus::Alive,
                    false if u128::from(idle_ms) < idle_min.as_millis() => ConsumerStatus::Unknown,
                    false => ConsumerStatus::Ghost,
                };
                let (queue, priority) = self.queue_of(&stream);
                let stream = stream.clone();
                members.push(Consumer { name, stream, queue, priority, pending, idle_ms, standing });
            }
        }
        Ok(members)
    }

    /// The consumers of the streams that plain workers share, with their idle times. Includes workers that report.
    pub(crate) async fn plain_readers(&self) -> Result<BTreeMap<String, Duration>, StoreError> {
        let mut readers: BTreeMap<String, Duration> = BTreeMap::new();
        for band in 0..BANDS.len() {
            for (name, _, idle_ms) in self.members(&self.keys.tasks(FUNCTION, band)).await? {
                let idle = Duration::from_millis(idle_ms);
                readers.entry(name).and_modify(|known| *known = idle.min(*known)).or_insert(idle);
            }
        }
        readers.remove(TAKER);
        Ok(readers)
    }

    /// Name, number of pending entries and idle time in ms of each consumer. A stream that was never read has no group.
    async fn members(&self, stream: &str) -> Result<Vec<(String, usize, u64)>, StoreError> {
        let there: bool = self.client.query(redis::cmd("EXISTS").arg(stream)).await?;
        if !there {
            return Ok(Vec::new());
        }
        let groups: Vec<HashMap<String, Value>> =
            self.client.query(redis::cmd("XINFO").arg("GROUPS").arg(stream)).await?;
        let ours = |group: &HashMap<String, Value>| {
            group.get("name").is_some_and(|name| text(name).is_ok_and(|name| name == GROUP))
        };
        if !groups.iter().any(ours) {
            return Ok(Vec::new());
        }
        let members: Vec<HashMap<String, Value>> =
            self.client.query(redis::cmd("XINFO").arg("CONSUMERS").arg(stream).arg(GROUP)).await?;
        members.iter().map(member).collect()
    }
}

fn member(fields: &HashMap<String, Value>) -> Result<(String, usize, u64), StoreError> {
    let field = |name: &str| fields.get(name).cloned().unwrap_or(Value::Nil);
    let pending = redis::from_redis_value(field("pending")).map_err(unreadable)?;
    let idle = redis::from_redis_value(field("idle")).map_err(unreadable)?;
    Ok((text(&field("name"))?, pending, idle))
}

fn text(value: &Value) -> Result<String, StoreError> {
    redis::from_redis_value(value.clone()).map_err(unreadable)
}
