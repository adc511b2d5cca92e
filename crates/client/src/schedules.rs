//! Schedules.

use std::time::Duration;

use reqwest::Method;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use switchyard_api::{Backfilled, RunAt, ScheduleView};
use switchyard_base::HumanDuration;
use switchyard_core::schedule::{CatchUp, Overlap};
use switchyard_core::{Labels, Timestamp};

use crate::request::list;
use crate::{Client, Error};

/// A schedule to create or to replace.
#[derive(Clone, Debug, Serialize)]
pub struct NewSchedule {
    /// The registered workflow to start.
    pub workflow: String,
    /// The version of the workflow; the newest at each start if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The input of the schedule's runs.
    pub input: Value,
    /// Cron expressions, one per line, such as `30 9 * * 1-5`, `*/10 * * * * *` (with seconds), `@hourly` or
    /// `@every 10s`.
    pub cron: String,
    /// The time zone, an IANA name such as `Europe/Berlin`.
    pub time_zone: String,
    /// The longest delay: each start is delayed by a part of this.
    #[serde(serialize_with = "lasting")]
    pub jitter: Duration,
    /// What the schedule does at a tick while the run of an earlier tick is in progress.
    pub overlap: Overlap,
    /// Which ticks are started that passed while no server was running.
    pub catch_up: CatchUp,
    /// Whether the schedule is paused: it starts nothing until it is resumed.
    pub paused: bool,
    /// The labels of the schedule's runs.
    pub labels: Labels,
}

fn lasting<S: Serializer>(length: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(&HumanDuration(*length))
}

impl Client {
    /// Lists the schedules, sorted by name.
    pub async fn schedules(&self) -> Result<Vec<ScheduleView>, Error> {
        let answer: Value = self.get(&["v1", "schedules"], &[]).await?;
        list(answer, "schedules").map_err(|error| self.strange(error.to_string()))
    }

    /// Gets a schedule with `upcoming` of its next starts and the outcomes of `starts` of its newest ticks.
    pub async fn schedule(&self, name: &str, upcoming: usize, starts: usize) -> Result<ScheduleView, Error> {
        let query = [("upcoming", upcoming.to_string()), ("starts", starts.to_string())];
        self.get(&["v1", "schedules", name], &query).await
    }

    /// Starts the workflow of a schedule now.
    pub async fn run_schedule(&self, name: &str) -> Result<RunAt, Error> {
        self.change(&["v1", "schedules", name, "run"], &json!({})).await
    }

    /// Creates the schedule with this name, or replaces it.
    pub async fn put_schedule(&self, name: &str, schedule: &NewSchedule) -> Result<ScheduleView, Error> {
        let request = self.request(Method::PUT, &["v1", "schedules", name]).json(schedule);
        self.read(&self.send_change(request).await?.1)
    }

    /// Pauses a schedule, or resumes it.
    pub async fn pause_schedule(&self, name: &str, paused: bool) -> Result<ScheduleView, Error> {
        let verb = if paused { "pause" } else { "resume" };
        self.change(&["v1", "schedules", name, verb], &json!({})).await
    }

    /// Removes a schedule; runs that it started continue.
    pub async fn remove_schedule(&self, name: &str) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &["v1", "schedules", name]);
        self.send_change(request).await.map(drop)
    }

    /// Starts the ticks between `from` and `until` that were not started.
    pub async fn backfill(&self, name: &str, from: Timestamp, until: Timestamp) -> Result<Backfilled, Error> {
        let body = json!({ "from": from.to_string(), "until": until.to_string() });
        self.change(&["v1", "schedules", name, "backfill"], &body).await
    }
}
