//! Bulk jobs, and runs that were deleted.

use serde::{Deserialize, Serialize};
use switchyard_core::RunId;
use switchyard_store::{BulkCounts, BulkJob, BulkResult, RunRecord};

use crate::RunCountView;

/// A bulk job and how far it has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkView {
    #[serde(flatten)]
    pub job: BulkJob,
    /// How many runs came to what.
    pub counts: BulkCounts,
}

/// Which runs a bulk job would work on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkPreview {
    /// True.
    pub dry_run: bool,
    /// As it was understood, with its times written out.
    pub filter: String,
    pub count: RunCountView,
    /// A few of the runs.
    pub sample: Vec<RunRecord>,
}

/// What a bulk job came to, run by run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkResultPage {
    pub results: Vec<BulkResult>,
    /// `after` of the next page.
    pub next: Option<RunId>,
}
