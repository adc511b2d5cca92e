//! `switchyard queues …`

mod dlq;

use std::collections::BTreeSet;

use switchyard_api::{QueueView, unserved as unserved_text};

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::target;

/// Show what waits for workers, by type and priority; see to dead letters
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  switchyard queues\n  switchyard queues dlq list"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    #[command(subcommand)]
    Dlq(dlq::Command),
}

pub(crate) async fn execute(args: Args, settings: &Settings) -> Result<(), Failure> {
    match args.command {
        Some(Command::Dlq(command)) => dlq::execute(command, settings).await,
        None => show(args.json, settings).await,
    }
}

async fn show(json: bool, settings: &Settings) -> Result<(), Failure> {
    let target = target::find(settings).await?;
    let view = target.queues().await?;
    if json {
        return Ok(output::json(&view)?);
    }
    if view.queues.is_empty() {
        output::tell("nothing waits for a worker");
    } else {
        let header = ["TYPE", "PRIORITY", "WAITING", "CLAIMED", "WORKERS", "OLDEST SINCE", "DEAD LETTERS"];
        output::table(header, view.queues.iter().map(row).collect())?;
    }
    let unserved = view.queues.iter().filter(|queue| queue.waiting > 0 && queue.workers == 0);
    let unserved: BTreeSet<String> = unserved.map(|queue| unserved_text(&queue.queue)).collect();
    if target.is_worked_at() {
        unserved.iter().for_each(|text| output::tell(&format!("waiting: {text}")));
    }
    if view.dead_letters > 0 {
        let letters = if view.dead_letters == 1 { "dead letter" } else { "dead letters" };
        let list = target.command("queues dlq list");
        output::hint(&format!("{} {letters}: {list}", view.dead_letters));
    }
    Ok(())
}

fn row(queue: &QueueView) -> [String; 7] {
    [
        queue.queue.to_string(),
        queue.priority.to_string(),
        queue.waiting.to_string(),
        queue.claimed.to_string(),
        output::or_dash((queue.waiting > 0).then(|| queue.workers.to_string())),
        output::or_dash(queue.oldest_at.map(output::moment)),
        queue.dead_letters.to_string(),
    ]
}
