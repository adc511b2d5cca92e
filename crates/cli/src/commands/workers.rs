//! `switchyard workers`

use switchyard_api::WorkerView;

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::target;

/// List the workers that are alive, and what each serves
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard workers --all --json")]
pub(crate) struct Args {
    /// Also workers that were heard of within a day and are silent now
    #[arg(long)]
    all: bool,

    /// Print `{"workers": […]}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let mut view = target::find(settings).await?.workers().await?;
    view.workers.retain(|worker| args.all || worker.alive);
    if args.json {
        return Ok(output::json(&view)?);
    }
    if view.workers.is_empty() {
        output::tell("no worker is alive");
        return Ok(());
    }
    let header = ["WORKER", "KIND", "FUNCTIONS", "TYPES", "BUSY", "SINCE", "LAST SEEN", "VERSION"];
    Ok(output::table(header, view.workers.iter().map(row).collect())?)
}

fn row(worker: &WorkerView) -> [String; 8] {
    let seen = output::moment(worker.last_seen);
    [
        worker.name.to_string(),
        worker.kind.as_str().to_owned(),
        list(&worker.functions),
        list(&worker.types),
        format!("{}/{}", worker.busy, worker.slots),
        output::moment(worker.since),
        if worker.alive { seen } else { format!("{seen} (silent)") },
        if worker.version.is_empty() { "-".to_owned() } else { worker.version.to_string() },
    ]
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}
