//! `switchyard checkpoints export`

use switchyard_checkpoints::{Seek, audit};

use super::{Target, Which, counted};
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// Print checkpoints with their values and pending writes as JSON lines, for audit
///
/// Threads in the order of their last write, each with its newest checkpoint first. Objects are shown and not made.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard checkpoints export --thread user-1 > user-1.jsonl")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Target,

    #[command(flatten)]
    which: Which,

    /// Only checkpoints of this namespace of the graph; empty is the graph itself
    #[arg(long, value_name = "NS")]
    checkpoint_ns: Option<String>,
}

/// Checkpoints held in memory at a time.
const PAGE: usize = 50;

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let store = args.place.open(settings)?;
    let mut count = 0_u64;
    let threads = args.which.threads(&store).await?;
    for info in &threads {
        let mut seek = Seek {
            thread: info.thread.clone(),
            ns: args.checkpoint_ns.clone(),
            count: PAGE,
            ..Seek::default()
        };
        loop {
            let page = store.page(&seek).await?;
            for stored in &page.items {
                output::json_line(&audit::document(stored))?;
                count += 1;
            }
            seek.after_seq = page.next;
            if page.next.is_none() {
                break;
            }
        }
    }
    let threads = counted(threads.len() as u64, "thread");
    output::tell(&format!("{} of {threads}", counted(count, "checkpoint")));
    Ok(())
}
