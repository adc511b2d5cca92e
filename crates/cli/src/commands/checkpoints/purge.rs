//! `switchyard checkpoints purge`

use serde_json::json;
use switchyard_checkpoints::{Checkpoints, Strategy};

use super::{Target, Which, counted};
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// Delete threads, or all but the newest of their checkpoints
///
/// A thread is deleted whole and at once. With --older-than, one that is written to meanwhile stays.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  switchyard checkpoints purge --older-than 30d --dry-run\n  switchyard checkpoints purge --thread user-1"
)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Target,

    #[command(flatten)]
    which: Which,

    /// All threads of the namespace
    #[arg(long, conflicts_with_all = ["threads", "older_than"])]
    all: bool,

    /// Keep the newest checkpoint of each namespace of the graph, and what it is rebuilt from
    #[arg(long)]
    keep_latest: bool,

    /// Only say which threads it would be
    #[arg(long)]
    dry_run: bool,

    /// Print `{"threads": […], "checkpoints_removed": …}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    if !args.all && args.which.threads.is_empty() && args.which.older_than.is_none() {
        return Err(Failure::usage("which threads? say --thread ID, --older-than DURATION or --all"));
    }
    let store = args.place.open(settings)?;
    // The cutoff is taken before the threads are read: anything written later is younger.
    let cutoff_ms = args.which.cutoff_ms(&store).await?;
    let (mut purged, mut removed) = (Vec::new(), 0);
    for info in args.which.threads(&store).await? {
        let count = match args.dry_run {
            true => Some(info.checkpoints),
            false => purge(args, &store, &info.thread, info.checkpoints, cutoff_ms).await?,
        };
        if let Some(count) = count {
            removed += count;
            purged.push(info.thread);
        }
    }
    if args.json {
        let removed = if args.dry_run { json!(null) } else { json!(removed) };
        return Ok(output::json(&json!({"threads": purged, "checkpoints_removed": removed}))?);
    }
    purged.iter().try_for_each(|thread| output::line(thread))?;
    let threads = counted(purged.len() as u64, "thread");
    output::tell(&match (args.dry_run, args.keep_latest) {
        (true, _) => format!("{threads} would be purged"),
        (false, true) => format!("{} of {threads} removed", counted(removed, "checkpoint")),
        (false, false) => format!("{threads} deleted"),
    });
    Ok(())
}

/// Purges a thread, and returns how many checkpoints were removed; `None` if the thread was kept.
async fn purge(
    args: &Args,
    store: &Checkpoints,
    thread: &str,
    checkpoints: u64,
    cutoff_ms: Option<i64>,
) -> Result<Option<u64>, Failure> {
    if args.keep_latest {
        return Ok(Some(store.prune(&[thread.to_owned()], Strategy::KeepLatest).await?));
    }
    let is_gone = match cutoff_ms {
        Some(cutoff_ms) => store.delete_idle_thread(thread, cutoff_ms).await?,
        None => store.delete_thread(thread).await?,
    };
    Ok(is_gone.then_some(checkpoints))
}
