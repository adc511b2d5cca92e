//! One signal at a time: the time until a decision is acknowledged, compared with one commit of the same archive.
//!
//! A decision is acknowledged when the archive has stored it, so over Redis it costs a Redis call and a commit.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use switchyard_core::RunId;
use switchyard_runtime::{Handlers, Principal, ids};

use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, programs};

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let store = BenchStore::open(args, Handlers::with_builtins()).await?;
    store.work();
    let program = programs::waiting(1)?;
    let mut runs = Vec::new();
    for _ in 0..args.decisions {
        runs.push(store.submit(&program).await?);
    }
    // A run that was submitted last has ended, so all earlier ones wait for their signals.
    store.complete(&programs::chain(1, "noop")?, 1, 1).await?;
    let mut commits = match store.in_redis() {
        Some(in_redis) => {
            in_redis.until_calm().await?;
            in_redis.commits().await?
        }
        None => None,
    };
    let mut signals = Vec::new();
    for run in runs {
        signals.push(signal(&store, run).await?);
        if let Some(commits) = &mut commits {
            commits.make_one().await?;
        }
    }
    store.check_succeeded(args.decisions + 1).await?;
    let mut figures = Figures::default().with_times("signal", &signals);
    if let Some(commits) = commits {
        figures = figures.with_times("commit", &commits.times);
        let (signal, commit) = (figures.0["signal_p50_ms"], figures.0["commit_p50_ms"]);
        figures = figures.with("signal_p50_in_commits", signal / commit);
    }
    store.close().await?;
    Ok(figures)
}

/// Signals a run from a task of the runtime, like the requests of a server. The run waits for this signal alone, and
/// ends with it.
async fn signal(store: &BenchStore, run: RunId) -> anyhow::Result<Duration> {
    let engine = store.engine().clone();
    let signalling = async move {
        let begun = Instant::now();
        let (by, id) = (Principal::local("bench"), ids::operation_id());
        engine.signal(&by, run, &id, "go", &json!(1)).await?;
        anyhow::Ok(begun.elapsed())
    };
    tokio::spawn(signalling).await?.with_context(|| format!("{run} was not signalled"))
}
