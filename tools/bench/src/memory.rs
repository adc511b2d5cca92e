//! Bytes per active run: of this process, or of Redis.

use std::sync::Arc;

use anyhow::Context;
use futures::stream::{self, StreamExt, TryStreamExt};
use switchyard_lang::Program;
use switchyard_runtime::Handlers;

use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, Store, programs};

/// Set in the child process that measures itself.
const ALONE: &str = "SWITCHYARD_BENCH_MEMORY_ALONE";

/// Measures Redis, or a child process: in this one, memory that another workload has freed would be reused, and not be
/// counted.
pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    if matches!(args.store, Store::Redis(_)) {
        return measure_redis(args).await;
    }
    if std::env::var_os(ALONE).is_some() {
        return measure_here(args).await;
    }
    let output = tokio::process::Command::new(std::env::current_exe()?)
        .args(["bench", "memory", "--json", "--repeat", "1", "--warmup", "0"])
        .args([
            "--memory-runs",
            &args.memory_runs.to_string(),
            "--memory-steps",
            &args.memory_steps.to_string(),
        ])
        .args(["--slots", &args.slots.to_string(), "--store", &args.store.to_string()])
        .env(ALONE, "1")
        .output()
        .await?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(serde_json::from_value(report["workloads"]["memory"].clone())?)
}

async fn measure_here(args: &Args) -> anyhow::Result<Figures> {
    let store = BenchStore::open(args, Handlers::with_builtins()).await?;
    let program = programs::waiting(args.memory_steps)?;
    store.work();
    // Some runs first, so that one-time allocations of the process are not charged to the runs.
    submit(&store, &program, 100).await?;
    let before = resident_bytes()?;
    submit(&store, &program, args.memory_runs).await?;
    let after = resident_bytes()?;
    store.close().await?;
    Ok(Figures::default().with("bytes_per_run", (after - before).max(0.0) / args.memory_runs as f64))
}

/// Measures runs that wait at their first node, and runs that wait half way.
async fn measure_redis(args: &Args) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    for (name, done) in [("bytes_per_run", 0), ("bytes_per_run_half_done", args.memory_steps / 2)] {
        let store = BenchStore::open(args, Handlers::with_builtins()).await?;
        let in_redis = store.in_redis().context("the Redis store")?;
        let program = programs::waiting_at(done, args.memory_steps)?;
        store.work();
        submit(&store, &program, 100).await?;
        in_redis.until_calm().await?;
        let before = in_redis.used_bytes().await?;
        submit(&store, &program, args.memory_runs).await?;
        in_redis.until_calm().await?;
        let after = in_redis.used_bytes().await?;
        figures = figures.with(name, (after - before).max(0.0) / args.memory_runs as f64);
        store.close().await?;
    }
    Ok(figures)
}

async fn submit(store: &BenchStore, program: &Arc<Program>, runs: usize) -> anyhow::Result<()> {
    let submitted = stream::iter(0..runs).map(|_| store.submit(program)).buffer_unordered(64);
    submitted.try_for_each(|_| async { Ok(()) }).await
}

/// The resident memory as the kernel counts it. The allocator keeps some free memory, so this is an upper bound.
fn resident_bytes() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| anyhow::anyhow!("the memory workload reads /proc/self/status: {error}"))?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<f64>().ok())
        .ok_or_else(|| anyhow::anyhow!("/proc/self/status has no VmRSS"))?;
    Ok(kib * 1024.0)
}
