//! A store to measure: a fresh data folder, or a fresh prefix in Redis, for each round.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::Value;
use switchyard_core::RunId;
use switchyard_core::run::RunStatus;
use switchyard_host::distributed::Distributed;
use switchyard_host::embedded::{Embedded, Options};
use switchyard_lang::Program;
use switchyard_runtime::{Engine, Handlers, Principal, Submission};

use crate::redis::RedisPrefix;
use crate::{Args, Store};

const STOP_WITHIN: Duration = Duration::from_secs(5);

/// An opened store. No run executes until [`BenchStore::work`].
pub(crate) enum BenchStore {
    // The folder is declared after the engine, so that it is dropped last.
    Embedded(Box<Embedded>, tempfile::TempDir),
    Redis(Box<Distributed>, RedisPrefix),
}

impl BenchStore {
    pub(crate) async fn open(args: &Args, handlers: Handlers) -> anyhow::Result<Self> {
        match &args.store {
            Store::Embedded(_) => {
                let folder = folder(args)?;
                let options = Options { slots: args.slots, handlers, ..Options::new(folder.path()) };
                let embedded = Embedded::open(options).await.context("the store could not be opened")?;
                Ok(Self::Embedded(Box::new(embedded), folder))
            }
            Store::Redis(redis) => {
                let in_redis = RedisPrefix::make(redis, args).await?;
                Ok(Self::Redis(Box::new(in_redis.open(Some(args.slots), handlers).await?), in_redis))
            }
        }
    }

    pub(crate) fn work(&self) {
        match self {
            Self::Embedded(embedded, _) => drop(embedded.work()),
            Self::Redis(distributed, _) => drop(distributed.work()),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        match self {
            Self::Embedded(embedded, _) => embedded.engine(),
            Self::Redis(distributed, _) => distributed.engine(),
        }
    }

    /// The Redis prefix, if the store is in Redis.
    pub(crate) fn in_redis(&self) -> Option<&RedisPrefix> {
        match self {
            Self::Embedded(..) => None,
            Self::Redis(_, in_redis) => Some(in_redis),
        }
    }

    pub(crate) async fn submit(&self, program: &Arc<Program>) -> anyhow::Result<RunId> {
        submit(self.engine(), program).await
    }

    /// Submits runs and waits for their ends, with a limited number in flight. Runs as a task of the runtime, like
    /// the connections of a server.
    pub(crate) async fn complete(
        &self,
        program: &Arc<Program>,
        runs: usize,
        in_flight: usize,
    ) -> anyhow::Result<Vec<Duration>> {
        let (engine, program) = (self.engine().clone(), program.clone());
        let completing = async move {
            let complete = |_| async {
                let begun = std::time::Instant::now();
                let run = submit(&engine, &program).await?;
                engine.wait_for_end(run).await?;
                anyhow::Ok(begun.elapsed())
            };
            stream::iter(0..runs).map(complete).buffer_unordered(in_flight.max(1)).try_collect().await
        };
        tokio::spawn(completing).await?
    }

    /// Checks that all runs succeeded: a benchmark whose runs fail measures nothing.
    pub(crate) async fn check_succeeded(&self, runs: usize) -> anyhow::Result<()> {
        let filter = switchyard_store::RunFilter {
            statuses: vec![RunStatus::Succeeded],
            limit: runs + 1,
            ..Default::default()
        };
        let succeeded = self.engine().history().runs(&filter).await?.items.len();
        if succeeded != runs {
            bail!("{succeeded} of {runs} runs succeeded");
        }
        Ok(())
    }

    /// Shuts down in order, and removes all data.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Embedded(embedded, _folder) => embedded.shut_down(STOP_WITHIN).await,
            Self::Redis(distributed, in_redis) => {
                distributed.shut_down(STOP_WITHIN).await;
                in_redis.clear().await?;
            }
        }
        Ok(())
    }
}

async fn submit(engine: &Engine, program: &Arc<Program>) -> anyhow::Result<RunId> {
    Ok(engine.submit(&Principal::local("bench"), Submission::new(program.clone(), Value::Null)).await?.run())
}

/// Creates a folder for a round, on the disk that is to be measured.
pub(crate) fn folder(args: &Args) -> anyhow::Result<tempfile::TempDir> {
    let under = match &args.store {
        Store::Embedded(Some(under)) => under.clone(),
        // Not the system's temporary folder: that is often in memory, where syncs cost nothing.
        Store::Embedded(None) | Store::Redis(_) => std::env::current_dir()?,
    };
    std::fs::create_dir_all(&under)?;
    tempfile::Builder::new()
        .prefix(".switchyard-bench-")
        .tempdir_in(&under)
        .with_context(|| format!("no folder can be made under {}", under.display()))
}
