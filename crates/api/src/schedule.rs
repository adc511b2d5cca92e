//! Schedules, in the form that clients see.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchyard_base::HumanDuration;
use switchyard_core::schedule::{CatchUp, Overlap};
use switchyard_core::{Labels, RunId, Timestamp, time};
use switchyard_store::{ScheduleRecord, ScheduleStart, StartOutcome};

/// A schedule as its author wrote it, with its next start and its last run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleView {
    pub name: Arc<str>,
    pub workflow: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The input of the schedule's runs. Lists omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Cron expressions, one per line.
    pub cron: Arc<str>,
    pub time_zone: Arc<str>,
    /// The jitter, such as `30s`.
    pub jitter: String,
    pub overlap: Overlap,
    pub catch_up: CatchUp,
    pub paused: bool,
    /// The labels of the schedule's runs.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(with = "time::rfc3339::option")]
    pub next_at: Option<Timestamp>,
    pub last_run: Option<RunId>,
    /// The schedule's next starts, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upcoming: Option<Vec<String>>,
    /// The outcomes of the schedule's newest ticks, newest first, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<Vec<StartView>>,
}

/// The outcome of a tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartView {
    #[serde(with = "time::rfc3339")]
    pub tick: Timestamp,
    /// When the start was last tried.
    #[serde(with = "time::rfc3339")]
    pub at: Timestamp,
    /// How often the start was tried.
    pub tries: u32,
    pub outcome: StartOutcomeName,
    /// The run that was started.
    pub run_id: Option<RunId>,
    /// Why no run was started.
    pub error: Option<String>,
    /// The caller that started the tick, if the schedule did not.
    pub by: Option<Arc<str>>,
}

/// The outcome of starting a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartOutcomeName {
    Started,
    /// The run of an earlier tick was still in progress.
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
    /// The schedule without its input, for lists.
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

/// The result of a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfilled {
    /// The runs of the ticks, oldest first.
    pub runs: Vec<TickRun>,
    /// The time from which the next backfill continues, if there are more ticks than one backfill starts.
    #[serde(with = "time::rfc3339::option")]
    pub next: Option<Timestamp>,
}

/// The run of a tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickRun {
    #[serde(with = "time::rfc3339")]
    pub tick: Timestamp,
    pub run_id: RunId,
    /// Whether the backfill started the run; false if it existed before.
    pub started: bool,
}
