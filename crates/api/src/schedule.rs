//! Workflows that start by themselves.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchyard_base::HumanDuration;
use switchyard_core::schedule::{CatchUp, Overlap};
use switchyard_core::{Labels, RunId, Timestamp, time};
use switchyard_store::ScheduleRecord;

/// A schedule as its author would write it, and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleView {
    pub name: Arc<str>,
    pub workflow: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The input of its runs. A list leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    pub cron: Arc<str>,
    pub time_zone: Arc<str>,
    /// Such as `30s`.
    pub jitter: String,
    pub overlap: Overlap,
    pub catch_up: CatchUp,
    pub paused: bool,
    /// Of its runs.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(with = "time::rfc3339::option")]
    pub next_at: Option<Timestamp>,
    pub last_run: Option<RunId>,
    /// Its next starts, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upcoming: Option<Vec<String>>,
}

impl ScheduleView {
    /// As a list shows it.
    pub fn listed(record: ScheduleRecord) -> Self {
        Self::with(record, None)
    }

    pub fn of(record: ScheduleRecord, input: Value) -> Self {
        Self::with(record, Some(input))
    }

    fn with(record: ScheduleRecord, input: Option<Value>) -> Self {
        let ScheduleRecord { schedule, next_at, last_run } = record;
        Self {
            name: schedule.name,
            workflow: schedule.workflow,
            version: schedule.version,
            input,
            cron: schedule.cron,
            time_zone: schedule.time_zone,
            jitter: HumanDuration(schedule.jitter).to_string(),
            overlap: schedule.overlap,
            catch_up: schedule.catch_up,
            paused: schedule.paused,
            labels: schedule.labels,
            next_at,
            last_run,
            upcoming: None,
        }
    }
}

/// What a backfill started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfilled {
    /// Oldest first.
    pub runs: Vec<TickRun>,
    /// Where to go on, if there are more ticks than one backfill starts.
    #[serde(with = "time::rfc3339::option")]
    pub next: Option<Timestamp>,
}

/// The run of a tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickRun {
    #[serde(with = "time::rfc3339")]
    pub tick: Timestamp,
    pub run_id: RunId,
    /// Whether it was started now, and not before.
    pub started: bool,
}
