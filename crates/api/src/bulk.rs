//! Bulk jobs.

use serde::{Deserialize, Serialize};
use switchyard_core::RunId;
use switchyard_store::{BulkCounts, BulkJob, BulkResult, RunRecord};

use crate::RunCountView;

/// A bulk job and its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkView {
    #[serde(flatten)]
    pub job: BulkJob,
    /// How many runs had each result.
    pub counts: BulkCounts,
}

/// The runs that a bulk job would work on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkPreview {
    /// Always true.
    pub dry_run: bool,
    /// The filter as the server parsed it, with relative times made absolute.
    pub filter: String,
    pub count: RunCountView,
    /// A few of the runs.
    pub sample: Vec<RunRecord>,
}

/// A page of a bulk job's results, one for each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkResultPage {
    pub results: Vec<BulkResult>,
    /// `after` of the next page.
    pub next: Option<RunId>,
}
