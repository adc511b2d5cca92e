//! Runs of sequential no-op steps, many in flight.

use std::time::Instant;

use switchyard_runtime::Handlers;

use crate::redis::{Limit, with_limit};
use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, programs};

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let store = BenchStore::open(args, Handlers::with_builtins()).await?;
    let program = programs::chain(args.chain_steps, "noop")?;
    store.work();
    let begun = Instant::now();
    let runs = store.complete(&program, args.chain_runs, args.chain_in_flight).await?;
    let seconds = begun.elapsed().as_secs_f64();
    store.check_succeeded(args.chain_runs).await?;
    let steps = (args.chain_runs * args.chain_steps) as f64;
    let mut figures = Figures::default()
        .with("steps_per_s", steps / seconds)
        .with("runs_per_s", args.chain_runs as f64 / seconds)
        .with_times("run", &runs);
    if let Some(in_redis) = store.in_redis() {
        figures = with_limit(figures, "steps_per_s", Limit::Chain, in_redis, args.slots).await?;
    }
    store.close().await?;
    Ok(figures)
}
