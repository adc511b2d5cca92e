//! A yard to measure in: a fresh data folder for each round.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::Value;
use switchyard_core::RunId;
use switchyard_core::run::RunStatus;
use switchyard_embedded::{Embedded, Options};
use switchyard_lang::Program;
use switchyard_runtime::{Handlers, Submission};

use crate::{Args, Store};

pub(crate) struct BenchYard {
    pub(crate) embedded: Embedded,
    // After the engine, so that the folder goes last.
    _folder: tempfile::TempDir,
}

impl BenchYard {
    pub(crate) async fn open(args: &Args, handlers: Handlers) -> anyhow::Result<Self> {
        let folder = folder(args)?;
        let options = Options { slots: args.slots, handlers, ..Options::new(folder.path()) };
        let embedded = Embedded::open(options).await.context("the store could not be opened")?;
        Ok(Self { embedded, _folder: folder })
    }

    pub(crate) async fn submit(&self, program: &Arc<Program>) -> anyhow::Result<RunId> {
        let submission = Submission::new(program.clone(), Value::Null);
        Ok(self.embedded.engine().submit(submission).await?.run())
    }

    /// Submits runs and waits for their ends, so many at once.
    pub(crate) async fn complete(
        &self,
        program: &Arc<Program>,
        runs: usize,
        in_flight: usize,
    ) -> anyhow::Result<Vec<Duration>> {
        stream::iter(0..runs)
            .map(|_| async {
                let begun = std::time::Instant::now();
                let run = self.submit(program).await?;
                self.embedded.engine().wait_for_end(run).await?;
                anyhow::Ok(begun.elapsed())
            })
            .buffer_unordered(in_flight.max(1))
            .try_collect()
            .await
    }

    /// A benchmark whose runs fail measures nothing.
    pub(crate) async fn check_succeeded(&self, runs: usize) -> anyhow::Result<()> {
        let filter = switchyard_store::RunFilter {
            status: Some(RunStatus::Succeeded),
            limit: runs + 1,
            ..Default::default()
        };
        let succeeded = self.embedded.engine().archive().runs(&filter).await?.items.len();
        if succeeded != runs {
            bail!("{succeeded} of {runs} runs succeeded");
        }
        Ok(())
    }

    pub(crate) async fn close(self) {
        self.embedded.shut_down(Duration::from_secs(5)).await;
    }
}

/// A new folder for each round, on the disk that is to be measured.
pub(crate) fn folder(args: &Args) -> anyhow::Result<tempfile::TempDir> {
    let Store::Embedded(under) = &args.store;
    let under = match under {
        Some(under) => under.clone(),
        // Not the system's temporary folder: that is often in memory, and syncs there cost nothing.
        None => std::env::current_dir()?,
    };
    std::fs::create_dir_all(&under)?;
    tempfile::Builder::new()
        .prefix(".switchyard-bench-")
        .tempdir_in(&under)
        .with_context(|| format!("no folder can be made under {}", under.display()))
}
