//! `switchyard consumers`

mod cleanup;

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use switchyard_store_redis::{Consumer, ConsumerStatus, Pending, Worker};

use crate::errors::Failure;
use crate::flags::StoreArgs;
use crate::output;
use crate::settings::Settings;
use crate::stores;

/// List who reads tasks from Redis: what each has pending, and who is alive
///
/// A consumer is `alive` if its worker says so, or has a pod (kubernetes.pod_selector). One that has neither, and has read
/// nothing for consumers.idle_min, is a `ghost`. The status of other members is unknown: plain workers, and those over
/// HTTP, do not report. LONG is what has been pending for longer than consumers.message_lock.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  switchyard consumers --redis redis://127.0.0.1
  switchyard consumers --json
  switchyard consumers cleanup --dry-run"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    _stores: StoreArgs,

    /// Print `{"consumers", "workers", "long_pending"}`
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Cleanup(cleanup::Args),
}

#[derive(Serialize)]
struct Listed {
    consumers: Vec<Consumer>,
    workers: Vec<Worker>,
    long_pending: Vec<Pending>,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    match &args.command {
        Some(Command::Cleanup(args)) => cleanup::execute(args, settings).await,
        None => list(args.json, settings).await,
    }
}

async fn list(json: bool, settings: &Settings) -> Result<(), Failure> {
    let admin = stores::admin(settings).await?;
    let rounds = stores::monitor_settings(settings);
    let pods = match stores::pods(settings).await? {
        Some(pods) => Some(pods.names().await.map_err(Failure::store)?),
        None => None,
    };
    let listed = Listed {
        consumers: admin.consumers(rounds.cleanup.idle_min, pods.as_ref()).await?,
        workers: admin.workers().await?,
        long_pending: admin.long_pending(rounds.long).await?.entries,
    };
    if json {
        return Ok(output::json(&listed)?);
    }
    if listed.consumers.is_empty() {
        output::tell("no consumer has read a task yet");
        return Ok(());
    }
    show(&listed)?;
    if listed.consumers.iter().any(|consumer| consumer.standing == ConsumerStatus::Ghost) {
        output::hint(&settings.command("consumers cleanup --dry-run"));
    }
    Ok(())
}

fn show(listed: &Listed) -> Result<(), Failure> {
    let workers: HashMap<&str, &Worker> =
        listed.workers.iter().map(|worker| (&*worker.name, worker)).collect();
    let row = |consumer: &Consumer| {
        let long = listed.long_pending.iter().filter(|entry| is_of(entry, consumer)).count();
        let worker = workers.get(&*consumer.name).filter(|worker| worker.alive);
        [
            consumer.name.clone(),
            consumer.queue.to_string(),
            consumer.priority.to_owned(),
            consumer.pending.to_string(),
            long.to_string(),
            output::took(Duration::from_millis(consumer.idle_ms)),
            standing(consumer.standing).to_owned(),
            output::or_dash(worker.map(|worker| format!("{}/{}", worker.busy, worker.slots))),
            output::or_dash(worker.map(|worker| worker.host.clone())),
        ]
    };
    let header = ["CONSUMER", "QUEUE", "PRIORITY", "PENDING", "LONG", "IDLE", "STANDING", "BUSY", "HOST"];
    Ok(output::table(header, listed.consumers.iter().map(row).collect())?)
}

fn is_of(entry: &Pending, consumer: &Consumer) -> bool {
    entry.stream == consumer.stream && entry.consumer == consumer.name
}

fn standing(standing: ConsumerStatus) -> &'static str {
    match standing {
        ConsumerStatus::Alive => "alive",
        ConsumerStatus::Unknown => "unknown",
        ConsumerStatus::Ghost => "ghost",
    }
}
