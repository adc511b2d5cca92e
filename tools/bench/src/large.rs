//! One run with many nodes behind one, and one with a long list: does it take twice as long with twice as many?

use std::time::Instant;

use switchyard_core::run::RunStatus;
use switchyard_runtime::Handlers;

use crate::redis::RedisPrefix;
use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, programs};

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    for &size in &args.large_sizes {
        for (name, program) in [("fan", programs::fan(size)?), ("map", programs::map(size)?)] {
            let store = BenchStore::open(args, Handlers::with_builtins()).await?;
            store.work();
            reset_slowest(store.in_redis()).await?;
            let begun = Instant::now();
            let run = store.submit(&program).await?;
            store.engine().wait_for_end(run).await?;
            let seconds = begun.elapsed().as_secs_f64();
            let status = store.engine().history().run(run).await?.status;
            anyhow::ensure!(status == RunStatus::Succeeded, "the {name} of {size} ended as {status}");
            figures = figures.with(&format!("{name}_{size:06}_s"), seconds);
            if let Some(slowest) = slowest(store.in_redis()).await? {
                figures = figures.with(&format!("{name}_{size:06}_slowest_call_ms"), slowest);
            }
            store.close().await?;
        }
    }
    Ok(figures)
}

/// Has Redis log calls that take longer than a millisecond, and empties its log. Refusals are ignored.
async fn reset_slowest(in_redis: Option<&RedisPrefix>) -> anyhow::Result<()> {
    let Some(in_redis) = in_redis else { return Ok(()) };
    let mut connection = in_redis.connect().await?;
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("slowlog-log-slower-than").arg(1_000);
    let _ = set.query_async::<()>(&mut connection).await;
    let _ = redis::cmd("SLOWLOG").arg("RESET").query_async::<()>(&mut connection).await;
    Ok(())
}

/// The longest Redis call in milliseconds.
async fn slowest(in_redis: Option<&RedisPrefix>) -> anyhow::Result<Option<f64>> {
    let Some(in_redis) = in_redis else { return Ok(None) };
    let mut connection = in_redis.connect().await?;
    let mut get = redis::cmd("SLOWLOG");
    let log = get.arg("GET").arg(-1).query_async::<Vec<Vec<redis::Value>>>(&mut connection).await;
    let micros = |entry: &Vec<redis::Value>| match entry.get(2) {
        Some(redis::Value::Int(micros)) => Some(*micros),
        _ => None,
    };
    let slowest = log.ok().and_then(|log| log.iter().filter_map(micros).max());
    Ok(Some(slowest.map_or(0.0, |micros| micros as f64 / 1e3)))
}
