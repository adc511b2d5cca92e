//! Changes to the graph of a run in progress.

use serde::Serialize;
use serde_json::{Value, json};
use switchyard_api::{PatchReport, PatchView};
use switchyard_base::PatchOp;
use switchyard_core::{PatchId, RunId};

use crate::request::list;
use crate::{Client, Error};

/// A change to the graph of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Patch {
    /// The operations, applied in order: all of them or none.
    pub ops: Vec<PatchOp>,
    /// The version of the graph that the author has seen; the newest if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<u32>,
    /// The author of the patch, for the run's history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for the patch, for the run's history.
    pub reason: String,
    /// Report the changes without making them.
    pub dry_run: bool,
}

impl Client {
    /// Lists the patches of a run, oldest first.
    pub async fn patches(&self, run: RunId) -> Result<Vec<PatchView>, Error> {
        let answer: Value = self.get(&["v1", "runs", &run.to_string(), "patches"], &[]).await?;
        list(answer, "patches").map_err(|error| self.strange(error.to_string()))
    }

    /// Changes the graph of a run; with `dry_run`, only reports the changes.
    pub async fn patch(&self, run: RunId, patch: &Patch) -> Result<PatchReport, Error> {
        self.change(&["v1", "runs", &run.to_string(), "patches"], patch).await
    }

    /// Undoes a patch. The server refuses if a node that the patch touched has started.
    pub async fn undo_patch(
        &self,
        run: RunId,
        patch: &PatchId,
        by: &str,
        dry_run: bool,
    ) -> Result<PatchReport, Error> {
        let path = ["v1", "runs", &run.to_string(), "patches", patch.as_str(), "undo"];
        self.change(&path, &json!({ "by": by, "dry_run": dry_run })).await
    }
}
