//! The chain workload while few runs wait, then while many wait.

use std::time::Instant;

use anyhow::Context;
use futures::stream::{self, StreamExt, TryStreamExt};
use switchyard_runtime::Handlers;

use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, programs};

const FEW: usize = 1_000;
/// Number of nodes of a waiting run.
const NODES: usize = 10;

/// Measures both in the same store, one after the other, so that the conditions are the same.
pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let store = BenchStore::open(args, Handlers::with_builtins()).await?;
    store.work();
    let few = FEW.min(args.waiting_runs);
    fill(&store, few).await?;
    let beside_few = chain(&store, args).await?;
    fill(&store, args.waiting_runs - few).await?;
    let beside_many = chain(&store, args).await?;
    store.close().await?;
    Ok(Figures::default()
        .with(&format!("steps_per_s_beside_{few}"), beside_few)
        .with(&format!("steps_per_s_beside_{}", args.waiting_runs), beside_many)
        .with("many_of_few", beside_many / beside_few))
}

/// Adds runs, and returns when all of them wait.
async fn fill(store: &BenchStore, runs: usize) -> anyhow::Result<()> {
    let program = programs::waiting(NODES)?;
    let submitted = stream::iter(0..runs).map(|_| store.submit(&program)).buffer_unordered(64);
    submitted.try_for_each(|_| async { Ok(()) }).await?;
    store.in_redis().context("the Redis store")?.until_calm().await
}

async fn chain(store: &BenchStore, args: &Args) -> anyhow::Result<f64> {
    let program = programs::chain(args.chain_steps, "noop")?;
    store.complete(&program, args.chain_in_flight, args.chain_in_flight).await?;
    let begun = Instant::now();
    store.complete(&program, args.chain_runs, args.chain_in_flight).await?;
    Ok((args.chain_runs * args.chain_steps) as f64 / begun.elapsed().as_secs_f64())
}
