//! Schedules as clients see them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchyard_base::HumanDuration;
use switchyard_core::schedule::{CatchUp, Overlap};
use switchyard_core::{Labels, RunId, Timestamp, time};
use switchyard_store::{ScheduleRecord, ScheduleStart, StartOutcome};

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
    /// One expression a line.
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
    /// What became of its newest ticks, newest first, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<Vec<StartView>>,
}

/// What became of a tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartView {
    #[serde(with = "time::rfc3339")]
    pub tick: Timestamp,
    /// When it was tried, the last time.
    #[serde(with = "time::rfc3339")]
    pub at: Timestamp,
    /// How often it was tried.
    pub tries: u32,
    pub outcome: StartOutcomeName,
    /// The run that was started.
    pub run_id: Option<RunId>,
    /// Why no run was started.
    pub error: Option<String>,
    /// The caller that started it, if the schedule did not.
    pub by: Option<Arc<str>>,
}

/// What starting a tick came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartOutcomeName {
    Started,
    /// The run of an earlier tick was still under way.
    Skipped,
    Failed,
}

impl From<ScheduleStart> for StartView {
    fn from(start: ScheduleStart) -> Self {
        Self {
            tick: start.tick,
            at: start.at,
            tries: start.tries,
            outcome: match &start.outcome {
                StartOutcome::Started(_) => StartOutcomeName::Started,
                StartOutcome::Skipped => StartOutcomeName::Skipped,
                StartOutcome::Failed(_) => StartOutcomeName::Failed,
            },
            run_id: start.outcome.run(),
            error: start.outcome.error().map(str::to_owned),
            by: start.by,
        }
    }
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
            starts: None,
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
