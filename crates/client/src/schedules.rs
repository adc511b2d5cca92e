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

/// When to start what.
#[derive(Clone, Debug, Serialize)]
pub struct NewSchedule {
    /// A registered workflow.
    pub workflow: String,
    /// Which of its versions; the newest at each start, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The input of its runs.
    pub input: Value,
    /// One expression a line, such as `30 9 * * 1-5`, `*/10 * * * * *` (with seconds), `@hourly` or `@every 10s`.
    pub cron: String,
    /// An IANA name such as `Europe/Berlin`.
    pub time_zone: String,
    /// Each start is put off by a part of this.
    #[serde(serialize_with = "lasting")]
    pub jitter: Duration,
    /// What happens at a tick while the run of an earlier one is under way.
    pub overlap: Overlap,
    /// What happens to ticks that passed while no server was running.
    pub catch_up: CatchUp,
    /// Start nothing until it is resumed.
    pub paused: bool,
    /// Of its runs.
    pub labels: Labels,
}

fn lasting<S: Serializer>(length: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(&HumanDuration(*length))
}

impl Client {
    /// The schedules, by name.
    pub async fn schedules(&self) -> Result<Vec<ScheduleView>, Error> {
        let answer: Value = self.get(&["v1", "schedules"], &[]).await?;
        list(answer, "schedules").map_err(|error| self.strange(error.to_string()))
    }

    /// A schedule, so many of its next starts, and what became of so many of its newest ticks.
    pub async fn schedule(&self, name: &str, upcoming: usize, starts: usize) -> Result<ScheduleView, Error> {
        let query = [("upcoming", upcoming.to_string()), ("starts", starts.to_string())];
        self.get(&["v1", "schedules", name], &query).await
    }

    /// Starts the workflow of a schedule now.
    pub async fn run_schedule(&self, name: &str) -> Result<RunAt, Error> {
        self.change(&["v1", "schedules", name, "run"], &json!({})).await
    }

    /// Keeps a schedule under this name, instead of the one that had it.
    pub async fn put_schedule(&self, name: &str, schedule: &NewSchedule) -> Result<ScheduleView, Error> {
        let request = self.request(Method::PUT, &["v1", "schedules", name]).json(schedule);
        self.read(&self.send_change(request).await?.1)
    }

    /// Pauses a schedule, or takes that back.
    pub async fn pause_schedule(&self, name: &str, paused: bool) -> Result<ScheduleView, Error> {
        let verb = if paused { "pause" } else { "resume" };
        self.change(&["v1", "schedules", name, verb], &json!({})).await
    }

    /// Removes a schedule; runs that it started go on.
    pub async fn remove_schedule(&self, name: &str) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &["v1", "schedules", name]);
        self.send_change(request).await.map(drop)
    }

    /// Starts the ticks of a span of time that were not started.
    pub async fn backfill(&self, name: &str, from: Timestamp, until: Timestamp) -> Result<Backfilled, Error> {
        let body = json!({ "from": from.to_string(), "until": until.to_string() });
        self.change(&["v1", "schedules", name, "backfill"], &body).await
    }
}
