//! The run filter, with its text form: one filter for the API, the CLI and bulk jobs.

mod text;

use std::time::Duration;

use switchyard_core::run::RunStatus;
use switchyard_core::{Labels, RunId, Timestamp};

pub use text::{BadFilter, FIELDS};

/// The largest assumed difference between the clocks of two processes: a run may have ended before the creation time
/// in its id.
const SKEW_MAX: Duration = Duration::from_secs(3600);

/// A filter for runs. Every given condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The run has one of these statuses; any status if empty.
    pub statuses: Vec<RunStatus>,
    pub workflow: Option<String>,
    /// The run has all of these labels.
    pub labels: Labels,
    /// The creation time, taken from the run's id.
    pub created: TimeRange,
    pub ended: TimeRange,
    /// Runs that a node of this run started.
    pub parent: Option<RunId>,
    pub schedule: Option<String>,
    /// The node that the run failed at.
    pub node: Option<String>,
    /// The code of the run's error.
    pub code: Option<String>,
    /// Text that the run's error contains, ignoring case. Requires a time range.
    pub error: Option<String>,
    /// Also lists runs that another run started. Implied by `parent`.
    pub include_children: bool,
    pub order: RunOrder,
    /// Lists only runs behind this one in the order: `next` of the previous page.
    pub cursor: Option<RunId>,
    pub limit: usize,
}

/// A span of time, including its beginning and excluding its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl TimeRange {
    pub fn is_open(&self) -> bool {
        self.from.is_none() && self.until.is_none()
    }
}

/// The order of runs by creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunOrder {
    #[default]
    Newest,
    Oldest,
}

/// The number of runs that match a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCount {
    pub runs: u64,
    /// There are more than `runs`, because counting stopped.
    pub more: bool,
}

/// Where counting stops, unless the caller asks for an exact count.
pub const COUNTED_MAX: u64 = 1_000;

/// The index that finds the runs of a filter in order. The other conditions are checked on each run that the index
/// finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPath<'f> {
    Label {
        key: &'f str,
        value: &'f str,
    },
    Parent(RunId),
    Code(&'f str),
    Node(&'f str),
    Schedule(&'f str),
    /// Runs that have an error.
    Failed,
    Workflow(&'f str),
    /// One search for each status; the results are merged.
    Statuses(&'f [RunStatus]),
    All,
}

impl RunFilter {
    /// Whether the filter includes runs that another run started.
    pub fn has_children(&self) -> bool {
        self.include_children || self.parent.is_some()
    }

    /// Chooses the most selective index for this filter.
    pub fn path(&self) -> RunPath<'_> {
        if let Some(parent) = self.parent {
            return RunPath::Parent(parent);
        }
        if let Some((key, value)) = self.labels.first_key_value() {
            return RunPath::Label { key, value };
        }
        match (&self.code, &self.node, &self.schedule) {
            (_, Some(node), _) => RunPath::Node(node),
            (Some(code), ..) => RunPath::Code(code),
            (.., Some(schedule)) => RunPath::Schedule(schedule),
            _ if self.error.is_some() => RunPath::Failed,
            _ => match &self.workflow {
                Some(workflow) => RunPath::Workflow(workflow),
                None if self.statuses.is_empty() => RunPath::All,
                None => RunPath::Statuses(&self.statuses),
            },
        }
    }

    /// The labels that the index of [`RunFilter::path`] does not check.
    pub fn labels_to_check(&self) -> impl Iterator<Item = (&str, &str)> {
        let found = usize::from(matches!(self.path(), RunPath::Label { .. }));
        self.labels.iter().skip(found).map(|(key, value)| (&**key, &**value))
    }

    /// The text to search for, escaped as in the JSON of a stored error.
    pub fn error_in_json(&self) -> Option<String> {
        let quoted = serde_json::Value::from(self.error.as_deref()?).to_string();
        quoted.get(1..quoted.len() - 1).map(ToOwned::to_owned)
    }

    /// The first id that a matching run can have, if the filter bounds it.
    pub fn first_id(&self) -> Option<RunId> {
        let from = self.created.from.map(|at| RunId::new(at, 0, 0));
        match self.order {
            RunOrder::Newest => from,
            RunOrder::Oldest => from.max(self.cursor.map(RunId::successor)),
        }
    }

    /// The id that all matching runs are before, if the filter bounds it.
    pub fn end_id(&self) -> Option<RunId> {
        let created = self.created.until;
        let ended = self.ended.until.map(|at| at.plus(SKEW_MAX));
        let until = [created, ended].into_iter().flatten().min().map(|at| RunId::new(at, 0, 0));
        match self.order {
            RunOrder::Newest => [until, self.cursor].into_iter().flatten().min(),
            RunOrder::Oldest => until,
        }
    }

    /// Refuses a filter that would read every run.
    pub fn check(&self) -> Result<(), BadFilter> {
        if self.error.is_some() && self.created.is_open() && self.ended.is_open() {
            return Err(BadFilter::Unbounded);
        }
        Ok(())
    }
}
