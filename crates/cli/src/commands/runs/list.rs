//! `switchyard runs list`

use switchyard_core::RunId;
use switchyard_core::run::RunStatus;
use switchyard_store::{RunFilter, RunRecord};

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::target;

/// List runs, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs list --status failed --limit 5")]
pub(crate) struct Args {
    /// Only runs that stand so: queued, running, paused, closing, compensating, succeeded, failed, cancelled
    #[arg(long)]
    status: Option<RunStatus>,

    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,

    /// Also runs that other runs started
    #[arg(long)]
    all: bool,

    /// How many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    /// Only runs older than this one: the next page
    #[arg(long, value_name = "RUN")]
    before: Option<RunId>,

    /// Print `{"runs": […], "next": …}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: Args, settings: &Settings) -> Result<(), Failure> {
    let filter = RunFilter {
        status: args.status,
        workflow: args.workflow,
        include_children: args.all,
        before: args.before,
        limit: args.limit as usize,
    };
    let page = target::find(settings).await?.runs(&filter).await?;
    if args.json {
        return Ok(output::json(&page)?);
    }
    if page.runs.is_empty() {
        output::tell("no runs");
        return Ok(());
    }
    let rows = page.runs.iter().map(row).collect();
    output::table(["RUN", "WORKFLOW", "STATUS", "ACCEPTED", "TOOK", "ERROR"], rows)?;
    if let Some(next) = page.next {
        output::hint(&format!("there may be more: --before {next}"));
    }
    Ok(())
}

fn row(run: &RunRecord) -> [String; 6] {
    [
        run.run_id.to_string(),
        run.workflow.to_string(),
        run.status.to_string(),
        output::moment(run.accepted_at),
        output::or_dash(run.ended_at.map(|ended| output::took(ended.since(run.accepted_at)))),
        run.error.as_ref().map(ToString::to_string).unwrap_or_default(),
    ]
}
