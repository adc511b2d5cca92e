//! `switchyard checkpoints show`

use switchyard_checkpoints::{Get, Stored, audit};
use switchyard_core::Timestamp;

use super::{Target, size, unknown_thread};
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// Show a checkpoint: the newest of a thread, or one by its id
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard checkpoints show user-1 --json")]
pub(crate) struct Args {
    thread: String,

    /// This one instead of the newest
    #[arg(long, value_name = "ID")]
    checkpoint: Option<String>,

    /// The namespace of the graph; by default the graph itself
    #[arg(long, value_name = "NS", default_value = "")]
    checkpoint_ns: String,

    #[command(flatten)]
    place: Target,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let store = args.place.open(settings)?;
    let wanted = Get {
        thread: args.thread.clone(),
        ns: args.checkpoint_ns.clone(),
        id: args.checkpoint.clone(),
        refresh_ms: None,
    };
    let found = store.get(&wanted).await?;
    let Some(stored) = found else {
        return Err(match (&args.checkpoint, store.thread_info(&args.thread).await?) {
            (_, None) => unknown_thread(&args.thread),
            (Some(id), _) => {
                Failure::usage(format!("thread `{}` has no checkpoint `{id}` there", args.thread))
                    .hint(format!("switchyard checkpoints list --thread {}", args.thread))
            }
            (None, _) => Failure::usage(format!(
                "thread `{}` has no checkpoint in the namespace `{}`",
                args.thread, args.checkpoint_ns
            )),
        });
    };
    if args.json {
        return Ok(output::json(&audit::document(&stored))?);
    }
    tell(&stored)
}

fn tell(stored: &Stored) -> Result<(), Failure> {
    let facts = [
        ("thread", stored.thread.clone()),
        ("checkpoint", stored.id.clone()),
        ("namespace", if stored.ns.is_empty() { "-".to_owned() } else { stored.ns.clone() }),
        ("parent", output::or_dash(stored.parent.as_deref())),
        ("run", output::or_dash(stored.run.as_deref())),
        ("stored", output::moment(Timestamp::from_millis(stored.at_ms))),
        ("metadata", audit::json(&stored.metadata).to_string()),
    ];
    for (name, value) in facts {
        output::line(&format!("{name:<11} {value}"))?;
    }
    if !stored.values.is_empty() {
        output::line("")?;
        let rows = stored.values.iter().map(|(channel, value)| {
            [
                channel.clone(),
                value.format.to_string(),
                size(value.bytes.len() as u64),
                audit::json(value).to_string(),
            ]
        });
        output::table(["CHANNEL", "FORMAT", "SIZE", "VALUE"], rows.collect())?;
    }
    if !stored.writes.is_empty() {
        output::line("")?;
        let rows = stored.writes.iter().map(|write| {
            [
                write.task.clone(),
                write.index.to_string(),
                write.channel.clone(),
                audit::json(&write.value).to_string(),
            ]
        });
        output::table(["PENDING TASK", "IDX", "CHANNEL", "VALUE"], rows.collect())?;
    }
    Ok(())
}
