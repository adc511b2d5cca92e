//! `switchyard queues dlq …`

use switchyard_api::{DeadKind, DeadLetterView, Delivery};
use switchyard_base::HumanDuration;
use switchyard_runtime::PurgeRequest;

use crate::commands::tell_status;
use crate::errors::Failure;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::Settings;
use crate::target;

/// Dead letters: tasks that took too many workers down, signals of plain workers that make no sense, entries of the outbox
/// that could not be archived
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Show(ShowArgs),
    Redrive(RedriveArgs),
    Purge(PurgeArgs),
}

/// List dead letters, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard queues dlq list --limit 20")]
pub(crate) struct ListArgs {
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    /// By kind, node and reason, the largest groups first
    #[arg(long)]
    group: bool,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Show a dead letter with every delivery that led to it
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard queues dlq show dead_…")]
pub(crate) struct ShowArgs {
    id: String,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Send a dead letter once more: the run of a task starts over from what failed, a signal is looked at again
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard queues dlq redrive dead_…")]
pub(crate) struct RedriveArgs {
    id: String,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"id", "run"}`
    #[arg(long)]
    json: bool,
}

/// Remove dead letters: one, those of an age, or all
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("which").required(true),
    after_help = "Example:\n  switchyard queues dlq purge dead_…\n  switchyard queues dlq purge --older-than 7d"
)]
pub(crate) struct PurgeArgs {
    #[arg(group = "which")]
    id: Option<String>,

    /// Those that have lain there for longer
    #[arg(long, value_name = "DURATION", group = "which")]
    older_than: Option<HumanDuration>,

    /// Every one
    #[arg(long, group = "which")]
    all: bool,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"purged"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(&args, settings).await,
        Command::Show(args) => show(&args, settings).await,
        Command::Redrive(args) => redrive(&args, settings).await,
        Command::Purge(args) => purge(args, settings).await,
    }
}

async fn list(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    if args.group {
        return list_groups(args, settings).await;
    }
    let letters = target::find(settings).await?.dead_letters(args.limit as usize).await?;
    if args.json {
        return Ok(output::json(&letters)?);
    }
    if letters.is_empty() {
        output::tell("no dead letters");
        return Ok(());
    }
    Ok(output::table(HEADER, letters.iter().map(row).collect())?)
}

async fn list_groups(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    let groups = target::find(settings).await?.dead_letter_groups(args.limit as usize).await?;
    if args.json {
        return Ok(output::json(&groups)?);
    }
    if groups.is_empty() {
        output::tell("no dead letters");
        return Ok(());
    }
    let rows = groups.iter().map(|group| {
        [
            group.letters.to_string(),
            group.kind.as_str().to_owned(),
            group.node.as_deref().unwrap_or("-").to_owned(),
            output::moment(group.last_at),
            group.example.to_string(),
            group.reason.to_string(),
        ]
    });
    Ok(output::table(["LETTERS", "KIND", "NODE", "NEWEST", "EXAMPLE", "REASON"], rows.collect())?)
}

const HEADER: [&str; 7] = ["DEAD LETTER", "KIND", "TYPE", "RUN", "NODE", "SINCE", "REASON"];

fn row(view: &DeadLetterView) -> [String; 7] {
    let letter = &view.letter;
    [
        letter.id.to_string(),
        letter.kind.as_str().to_owned(),
        output::or_dash(view.queue.as_ref()),
        output::or_dash(letter.run_id),
        output::or_dash(letter.node.as_ref()),
        output::moment(letter.at),
        letter.reason.to_string(),
    ]
}

async fn show(args: &ShowArgs, settings: &Settings) -> Result<(), Failure> {
    let view = target::find(settings).await?.dead_letter(&args.id).await?;
    if args.json {
        return Ok(output::json(&view)?);
    }
    output::table(HEADER, vec![row(&view)])?;
    if let (DeadKind::Signal, Some(content), _) | (DeadKind::OutboxEntry, _, Some(content)) =
        (view.letter.kind, &view.letter.signal, &view.letter.excerpt)
    {
        output::line(content)?;
    }
    let deliveries = view.deliveries.unwrap_or_default();
    if !deliveries.is_empty() {
        let header = ["DELIVERED", "ATTEMPT", "WORKER", "UNTIL", "WHAT CAME OF IT"];
        output::table(header, deliveries.iter().map(delivery).collect())?;
    }
    Ok(())
}

fn delivery(delivery: &Delivery) -> [String; 5] {
    [
        output::moment(delivery.at),
        delivery.attempt.to_string(),
        delivery.worker.to_string(),
        output::or_dash(delivery.ended_at.map(output::moment)),
        output::or_dash(delivery.ended.as_ref()),
    ]
}

async fn redrive(args: &RedriveArgs, settings: &Settings) -> Result<(), Failure> {
    let target = args.operation.find(settings).await?;
    let redriven = target.redrive(&args.id).await?;
    if args.json {
        output::json(&redriven)?;
    }
    match redriven.run {
        Some(at) => tell_status(at, false, &*target),
        None => {
            output::tell(&format!("{}: sent once more", redriven.id));
            Ok(())
        }
    }
}

async fn purge(args: PurgeArgs, settings: &Settings) -> Result<(), Failure> {
    let which = match (args.id, args.older_than) {
        (Some(id), _) => PurgeRequest::One(id),
        (None, Some(age)) => PurgeRequest::OlderThan(age.0),
        (None, None) => PurgeRequest::All,
    };
    let purged = args.operation.find(settings).await?.purge(&which).await?;
    if let (0, PurgeRequest::One(id)) = (purged, &which) {
        return Err(switchyard_store::StoreError::unknown("dead letter", id).into());
    }
    if args.json {
        output::json(&serde_json::json!({ "purged": purged }))?;
    }
    output::tell(&format!("{purged} removed"));
    Ok(())
}
