//! Enqueues single-node runs without a worker, then drains them.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use switchyard_runtime::Handlers;

use crate::redis::{Limit, with_limit};
use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, programs};

/// Polling interval of the drain: far below its duration.
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let store = BenchStore::open(args, Handlers::with_builtins()).await?;
    let program = programs::chain(1, "noop")?;
    let begun = Instant::now();
    stream::iter(0..args.queue_runs)
        .map(|_| store.submit(&program))
        .buffer_unordered(args.queue_submitters.max(1))
        .try_for_each(|_| async { Ok(()) })
        .await?;
    let enqueued = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    store.work();
    let mut look = tokio::time::interval(LOOK_EVERY);
    while store.engine().size().await?.runs > 0 {
        look.tick().await;
    }
    let drained = begun.elapsed().as_secs_f64();
    let runs = args.queue_runs as f64;
    let mut figures =
        Figures::default().with("enqueue_per_s", runs / enqueued).with("drain_per_s", runs / drained);
    if let Some(in_redis) = store.in_redis() {
        figures = with_limit(figures, "drain_per_s", Limit::Queue, in_redis, args.slots).await?;
    }
    store.close().await?;
    Ok(figures)
}
