//! `switchyard checkpoints list`

use std::time::Duration;

use serde_json::json;
use switchyard_base::HumanDuration;
use switchyard_checkpoints::{Checkpoints, Seek, Stored, ThreadInfo, audit};
use switchyard_core::Timestamp;

use super::{Target, Which, size};
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// List threads, or with --thread the checkpoints of a thread; newest first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  switchyard checkpoints list --older-than 30d\n  switchyard checkpoints list --thread user-1"
)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Target,

    #[command(flatten)]
    which: Which,

    /// Only checkpoints of this namespace of the graph; empty is the graph itself
    #[arg(long, value_name = "NS", requires = "threads")]
    checkpoint_ns: Option<String>,

    /// How many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let store = args.place.open(settings)?;
    let mut threads = args.which.threads(&store).await?;
    if !args.which.threads.is_empty() {
        return checkpoints(args, &store, &threads).await;
    }
    let more = threads.len().saturating_sub(args.limit);
    threads.truncate(args.limit);
    if args.json {
        return Ok(output::json(&threads)?);
    }
    if threads.is_empty() {
        output::tell("no threads");
        return Ok(());
    }
    let header = ["THREAD", "CHECKPOINTS", "NAMESPACES", "SIZE", "WRITTEN", "TTL"];
    output::table(header, threads.iter().map(thread_row).collect())?;
    if more > 0 {
        output::hint(&format!("{more} more: --limit N"));
    }
    Ok(())
}

fn thread_row(info: &ThreadInfo) -> [String; 6] {
    let ttl = info.ttl_ms.map(|ttl_ms| HumanDuration(Duration::from_secs(ttl_ms / 1_000)));
    [
        info.thread.clone(),
        info.checkpoints.to_string(),
        info.namespaces.to_string(),
        size(info.bytes),
        output::moment(Timestamp::from_millis(info.at_ms)),
        output::or_dash(ttl),
    ]
}

async fn checkpoints(args: &Args, store: &Checkpoints, threads: &[ThreadInfo]) -> Result<(), Failure> {
    let mut found = Vec::new();
    for thread in threads {
        let mut seek = Seek {
            thread: thread.thread.clone(),
            ns: args.checkpoint_ns.clone(),
            count: args.limit.clamp(1, 500),
            heads_only: true,
            ..Seek::default()
        };
        while found.len() < args.limit {
            let page = store.page(&seek).await?;
            found.extend(page.items);
            seek.after_seq = page.next;
            if page.next.is_none() {
                break;
            }
        }
    }
    found.truncate(args.limit);
    if args.json {
        return Ok(output::json(&found.iter().map(head).collect::<Vec<_>>())?);
    }
    if found.is_empty() {
        output::tell("no checkpoints");
        return Ok(());
    }
    let header = ["CHECKPOINT", "NS", "STORED", "SOURCE", "STEP", "RUN"];
    Ok(output::table(header, found.iter().map(checkpoint_row).collect())?)
}

fn head(stored: &Stored) -> serde_json::Value {
    json!({
        "thread_id": stored.thread,
        "checkpoint_ns": stored.ns,
        "checkpoint_id": stored.id,
        "parent_checkpoint_id": stored.parent,
        "seq": stored.seq,
        "stored_at_ms": stored.at_ms,
        "metadata": audit::json(&stored.metadata),
    })
}

fn checkpoint_row(stored: &Stored) -> [String; 6] {
    let metadata = audit::json(&stored.metadata);
    let shown = |key: &str| match metadata.get(key) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "-".to_owned(),
    };
    [
        stored.id.clone(),
        if stored.ns.is_empty() { "-".to_owned() } else { stored.ns.clone() },
        output::moment(Timestamp::from_millis(stored.at_ms)),
        shown("source"),
        shown("step"),
        output::or_dash(stored.run.as_deref()),
    ]
}
