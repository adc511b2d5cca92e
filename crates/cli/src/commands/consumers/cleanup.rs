//! `switchyard consumers cleanup`

use serde_json::json;
use switchyard_store_redis::{CleanedUp, CleanupPolicy, Ghost, Pass};

use crate::errors::Failure;
use crate::flags::StoreArgs;
use crate::output;
use crate::settings::Settings;
use crate::stores;

/// Take ghosts out of the group now, after moving what they had pending
///
/// `up`, `api` and `worker` do this by themselves every consumers.cleanup_every. An unclaimed entry goes back
/// to its stream; one that is held goes to a worker that is alive, and comes back when its lease has run out. A ghost
/// that holds something, while no worker is alive, stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard consumers cleanup --dry-run
  IDLE_THRESHOLD_SECONDS=60 switchyard consumers cleanup --redis redis://127.0.0.1")]
pub(crate) struct Args {
    #[command(flatten)]
    _stores: StoreArgs,

    /// Only say who is a ghost
    #[arg(long)]
    dry_run: bool,

    /// Print `{"scanned", "dry_run", "ghosts"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let admin = stores::admin(settings).await?;
    let pods = stores::pods(settings).await?;
    let usual = stores::monitor_settings(settings).cleanup;
    let dry_run = args.dry_run || usual.dry_run;
    let now = CleanupPolicy { dry_run, every: std::time::Duration::ZERO, ..usual };
    let Pass::Made(done) = admin.clean_up(&now, pods.as_deref()).await? else {
        return Err(Failure::refused("another process is cleaning up").hint("try again in a moment"));
    };
    if args.json {
        let CleanedUp { scanned, ghosts } = &done;
        output::json(&json!({ "scanned": scanned, "dry_run": dry_run, "ghosts": ghosts }))?;
    } else if !done.ghosts.is_empty() {
        output::table(
            ["GHOST", "QUEUE", "PRIORITY", "PENDING", "RETURNED", "CLAIMED", "VOID", "RESULT"],
            done.ghosts.iter().map(|ghost| row(ghost, dry_run)).collect(),
        )?;
    }
    tell(&done, dry_run);
    match done.errors() {
        0 => Ok(()),
        errors => Err(Failure::store(format!("{errors} ghosts could not be taken out of their groups"))),
    }
}

fn row(ghost: &Ghost, dry_run: bool) -> [String; 8] {
    let result = match (&ghost.error, ghost.deleted) {
        (Some(error), _) => error.clone(),
        (None, true) => "gone".to_owned(),
        (None, false) if dry_run => "would go".to_owned(),
        (None, false) => format!("stays: holds {}", ghost.kept),
    };
    let consumer = &ghost.consumer;
    let counts = [consumer.pending, ghost.returned, ghost.claimed, ghost.void].map(|count| count.to_string());
    let [pending, returned, claimed, void] = counts;
    let (name, queue, priority) =
        (consumer.name.clone(), consumer.queue.to_string(), consumer.priority.to_owned());
    [name, queue, priority, pending, returned, claimed, void, result]
}

fn tell(done: &CleanedUp, dry_run: bool) {
    let found = format!("{} of {} consumers are ghosts", done.ghosts.len(), done.scanned);
    match dry_run {
        true => output::tell(&format!("{found}; nothing was changed")),
        false => output::tell(&format!("{found}; {} are gone", done.deleted())),
    }
}
