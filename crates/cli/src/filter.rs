//! Flags that select runs.

use switchyard_core::Timestamp;
use switchyard_store::{BadFilter, Clock, RunFilter, SystemClock};

use crate::errors::Failure;

/// The fields of a filter, as flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FilterArgs {
    /// Conditions: `status=failed,cancelled label=team=search created_after=24h`
    #[arg(long, value_name = "CONDITIONS")]
    filter: Option<String>,

    /// Only runs that stand so, or in one of these ways: queued, running, paused, closing, compensating, succeeded,
    /// failed, cancelled
    #[arg(long, value_name = "STATUS,…")]
    status: Option<String>,

    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,

    /// Only runs with this label; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,

    /// Created at this time or later: `2026-11-16T08:00:00Z`, or `24h` ago
    #[arg(long, value_name = "TIME")]
    created_after: Option<String>,

    /// Created before this time
    #[arg(long, value_name = "TIME")]
    created_before: Option<String>,

    /// Ended at this time or later
    #[arg(long, value_name = "TIME")]
    ended_after: Option<String>,

    /// Ended before this time
    #[arg(long, value_name = "TIME")]
    ended_before: Option<String>,

    /// Only runs that this run started
    #[arg(long, value_name = "RUN")]
    parent: Option<String>,

    /// Only runs that this schedule started
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,

    /// Only runs that failed at this node
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Only runs whose error has this code
    #[arg(long, value_name = "CODE")]
    code: Option<String>,

    /// Only runs with this text in their error; needs a time range
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

impl FilterArgs {
    /// The filter; relative times count back from now.
    pub(crate) fn read(&self) -> Result<RunFilter, Failure> {
        self.read_at(SystemClock.now()).map_err(|bad| Failure::usage(bad.to_string()))
    }

    fn read_at(&self, now: Timestamp) -> Result<RunFilter, BadFilter> {
        let mut filter = RunFilter::parse(self.filter.as_deref().unwrap_or_default(), now)?;
        for label in &self.labels {
            filter.set("label", label, now)?;
        }
        for (field, value) in self.conditions() {
            if let Some(value) = value {
                filter.set(field, value, now)?;
            }
        }
        filter.check()?;
        Ok(filter)
    }

    fn conditions(&self) -> [(&'static str, &Option<String>); 11] {
        [
            ("status", &self.status),
            ("workflow", &self.workflow),
            ("created_after", &self.created_after),
            ("created_before", &self.created_before),
            ("ended_after", &self.ended_after),
            ("ended_before", &self.ended_before),
            ("parent", &self.parent),
            ("schedule", &self.schedule),
            ("node", &self.node),
            ("code", &self.code),
            ("error", &self.error),
        ]
    }
}
