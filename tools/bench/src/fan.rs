//! One node, then many, then one.

use std::time::Instant;

use switchyard_runtime::Handlers;

use crate::redis::{Limit, with_limit};
use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, programs};

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let store = BenchStore::open(args, Handlers::with_builtins()).await?;
    let program = programs::fan(args.fan_width)?;
    store.work();
    let begun = Instant::now();
    let runs = store.complete(&program, args.fan_runs, args.fan_in_flight).await?;
    let seconds = begun.elapsed().as_secs_f64();
    store.check_succeeded(args.fan_runs).await?;
    let nodes = (args.fan_runs * (args.fan_width + 2)) as f64;
    let mut figures = Figures::default().with("nodes_per_s", nodes / seconds).with_times("run", &runs);
    if let Some(in_redis) = store.in_redis() {
        figures = with_limit(figures, "nodes_per_s", Limit::Chain, in_redis, args.slots).await?;
    }
    store.close().await?;
    Ok(figures)
}
