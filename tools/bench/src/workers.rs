//! The chain workload with one worker process, and with two that share the same number of slots.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use switchyard_runtime::Handlers;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::redis::RedisPrefix;
use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, Store, programs};

/// Time limit for a worker to start, and to stop.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let one = chain(args, 1).await?;
    let two = chain(args, 2).await?;
    Ok(Figures::default()
        .with("steps_per_s_of_1", one)
        .with("steps_per_s_of_2", two)
        .with("two_of_one", two / one))
}

/// Measures one setup. This process submits and ships, as `switchyard api` does; the workers are `switchyard worker`.
async fn chain(args: &Args, processes: usize) -> anyhow::Result<f64> {
    let Store::Redis(redis) = &args.store else { anyhow::bail!("workers share a Redis") };
    let in_redis = RedisPrefix::make(redis, args).await?;
    let submits = in_redis.open(None, Handlers::with_builtins()).await?;
    let store = BenchStore::Redis(Box::new(submits), in_redis);
    store.work();
    let in_redis = store.in_redis().context("the Redis store")?;
    let mut workers = Vec::new();
    for _ in 0..processes {
        workers.push(start(args, in_redis, (args.slots / processes).max(1)).await?);
    }
    let program = programs::chain(args.chain_steps, "noop")?;
    store.complete(&program, args.chain_in_flight, args.chain_in_flight).await?;
    let begun = Instant::now();
    store.complete(&program, args.chain_runs, args.chain_in_flight).await?;
    let seconds = begun.elapsed().as_secs_f64();
    for mut worker in workers {
        worker.kill().await?;
    }
    store.close().await?;
    Ok((args.chain_runs * args.chain_steps) as f64 / seconds)
}

async fn start(args: &Args, in_redis: &RedisPrefix, slots: usize) -> anyhow::Result<Child> {
    let shared = in_redis.for_workers(args).context("an archive that processes share")?;
    let mut worker = Command::new(std::env::current_exe()?)
        .args(["worker", "--slots", &slots.to_string()])
        .envs(shared)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let said = worker.stderr.take().context("what it says")?;
    let mut lines = BufReader::new(said).lines();
    let starts = async {
        while let Some(line) = lines.next_line().await? {
            if line.contains(" works;") {
                return Ok(());
            }
        }
        anyhow::bail!("a worker process did not start")
    };
    tokio::time::timeout(STARTS_WITHIN, starts).await.context("a worker process did not start in time")??;
    // The remaining output is read, so that the worker never blocks on the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(worker)
}
