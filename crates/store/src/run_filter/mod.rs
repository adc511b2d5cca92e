//! Which runs to list: one filter for the API, the CLI and bulk jobs, and its text form.

mod text;

use std::time::Duration;

use switchyard_core::run::RunStatus;
use switchyard_core::{Labels, RunId, Timestamp};

pub use text::{BadFilter, FIELDS};

/// How far the clocks of two processes may be apart: a run may have ended before its id says that it was created.
const SKEW_MAX: Duration = Duration::from_secs(3600);

/// Which runs to list. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Any of these; every status if there are none.
    pub statuses: Vec<RunStatus>,
    pub workflow: Option<String>,
    /// All of these.
    pub labels: Labels,
    /// When it was created: the time in its id.
    pub created: TimeRange,
    pub ended: TimeRange,
    /// Runs that a node of this run started.
    pub parent: Option<RunId>,
    pub schedule: Option<String>,
    /// The node that the run failed at.
    pub node: Option<String>,
    /// The code of its error.
    pub code: Option<String>,
    /// Text in its error, in any case. Only together with a time range.
    pub error: Option<String>,
    /// Runs that another run started are left out unless asked for, or unless `parent` is given.
    pub include_children: bool,
    pub order: RunOrder,
    /// Only runs behind this one, in the order: `next` of the page before.
    pub cursor: Option<RunId>,
    pub limit: usize,
}

/// A span of time: its beginning is in it, its end is not.
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

/// By creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunOrder {
    #[default]
    Newest,
    Oldest,
}

/// How many runs a filter finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCount {
    pub runs: u64,
    /// There are more than that: counting stopped.
    pub more: bool,
}

/// Where counting stops, unless an exact count is asked for.
pub const COUNTED_MAX: u64 = 1_000;

/// The index that finds the runs of a filter in order. The other conditions are checked on what it finds.
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
    /// One search for each, merged.
    Statuses(&'f [RunStatus]),
    All,
}

impl RunFilter {
    /// Children are among the runs that it finds.
    pub fn has_children(&self) -> bool {
        self.include_children || self.parent.is_some()
    }

    /// The most selective first.
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

    /// The labels that [`RunFilter::path`] leaves to be checked.
    pub fn labels_to_check(&self) -> impl Iterator<Item = (&str, &str)> {
        let found = usize::from(matches!(self.path(), RunPath::Label { .. }));
        self.labels.iter().skip(found).map(|(key, value)| (&**key, &**value))
    }

    /// The text to search errors for, as it stands in the JSON that archives keep of an error.
    pub fn error_in_json(&self) -> Option<String> {
        let quoted = serde_json::Value::from(self.error.as_deref()?).to_string();
        quoted.get(1..quoted.len() - 1).map(ToOwned::to_owned)
    }

    /// The first id that a run may have, if its time bounds it.
    pub fn first_id(&self) -> Option<RunId> {
        let from = self.created.from.map(|at| RunId::new(at, 0, 0));
        match self.order {
            RunOrder::Newest => from,
            RunOrder::Oldest => from.max(self.cursor.map(RunId::successor)),
        }
    }

    /// The id before which every run is that it finds.
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
