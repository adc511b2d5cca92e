//! Reports of workers that they are alive: `wf.workers` and `worker:{name}`.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use switchyard_core::Timestamp;
use switchyard_store::StoreError;

use super::{RedisAdmin, millis};
use crate::scripts;

/// How long a worker that has stopped reporting is remembered.
const MEMORY: Duration = Duration::from_secs(24 * 3600);

/// The report of a worker about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerReport {
    /// The worker's name, and that of its consumer.
    pub name: String,
    pub types: Vec<String>,
    pub slots: usize,
    /// The number of slots that hold a task.
    pub busy: usize,
    pub host: String,
    pub process: u32,
    pub version: String,
    pub started: Timestamp,
    /// How long the worker counts as alive without another report.
    pub holds: Duration,
}

/// A worker as it last reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    pub name: String,
    pub alive: bool,
    pub types: Vec<String>,
    pub slots: usize,
    pub busy: usize,
    pub host: String,
    pub process: u32,
    pub version: String,
    pub started: Timestamp,
    pub reported: Timestamp,
}

impl RedisAdmin {
    /// Stores that a worker is alive. Returns how many are.
    pub async fn report(&self, report: &WorkerReport) -> Result<usize, StoreError> {
        let keys = [self.keys.workers(), self.keys.worker(&report.name)];
        let mut args = vec![self.time(), report.name.clone(), millis(report.holds), millis(MEMORY)];
        for (field, value) in [
            ("types", report.types.join(" ")),
            ("slots", report.slots.to_string()),
            ("busy", report.busy.to_string()),
            ("host", report.host.clone()),
            ("process", report.process.to_string()),
            ("version", report.version.clone()),
            ("started", report.started.as_millis().to_string()),
        ] {
            args.extend([field.to_owned(), value]);
        }
        let (alive,): (usize,) = self.client.run(&scripts::WORKER_ALIVE, &keys, &args).await?;
        Ok(alive)
    }

    /// Removes the report of a worker that has left.
    pub async fn sign_off(&self, name: &str) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        commands.zrem(self.keys.workers(), name).ignore().del(self.keys.worker(name)).ignore();
        self.client.query_all(&commands).await
    }

    /// The workers that have reported within a day, in the order of their names.
    pub async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let now = self.now().await?;
        let listed: Vec<(String, f64)> = self
            .client
            .query(redis::cmd("ZRANGE").arg(self.keys.workers()).arg(0).arg(-1).arg("WITHSCORES"))
            .await?;
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        let mut ask = redis::pipe();
        for (name, _) in &listed {
            ask.hgetall(self.keys.worker(name));
        }
        let said: Vec<HashMap<String, String>> = self.client.query_all(&ask).await?;
        let mut workers: Vec<Worker> = listed
            .into_iter()
            .zip(said)
            .map(|((name, until), said)| read(name, until as i64 >= now.as_millis(), &said))
            .collect();
        workers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(workers)
    }
}

fn read(name: String, alive: bool, said: &HashMap<String, String>) -> Worker {
    let text = |field: &str| said.get(field).cloned().unwrap_or_default();
    let moment = |field: &str| Timestamp::from_millis(text(field).parse().unwrap_or(0));
    Worker {
        name,
        alive,
        types: text("types").split_whitespace().map(str::to_owned).collect(),
        slots: text("slots").parse().unwrap_or(0),
        busy: text("busy").parse().unwrap_or(0),
        host: text("host"),
        process: text("process").parse().unwrap_or(0),
        version: text("version"),
        started: moment("started"),
        reported: moment("at"),
    }
}
