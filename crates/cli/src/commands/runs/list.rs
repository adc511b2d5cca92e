//! `switchyard runs list`

use std::collections::HashMap;

use switchyard_api::{RunCountView, RunWaits};
use switchyard_core::RunId;
use switchyard_store::{RunFilter, RunOrder, RunRecord};

use crate::errors::Failure;
use crate::filter::FilterArgs;
use crate::output;
use crate::reasons;
use crate::settings::Settings;
use crate::target::{self, Target};

/// The most runs of a page whose waits are fetched: each takes a request to the server.
const WAITS_MAX: usize = 50;

/// List runs, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  switchyard runs list --status failed --limit 5
  switchyard runs list --label team=search --created-after 24h --count")]
pub(crate) struct Args {
    #[command(flatten)]
    which: FilterArgs,

    /// Also runs that other runs started
    #[arg(long)]
    all: bool,

    /// Oldest first
    #[arg(long)]
    oldest: bool,

    /// How many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    /// Only runs behind this one: the next page
    #[arg(long, value_name = "RUN", alias = "before")]
    after: Option<RunId>,

    /// Also say how many there are, up to 1,000
    #[arg(long)]
    count: bool,

    /// Count all of them, however long that takes
    #[arg(long)]
    exact: bool,

    /// Print `{"runs": […], "next": …}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: Args, settings: &Settings) -> Result<(), Failure> {
    let given = args.which.read()?;
    let filter = RunFilter {
        include_children: given.include_children || args.all,
        order: if args.oldest { RunOrder::Oldest } else { given.order },
        cursor: args.after,
        limit: args.limit as usize,
        ..given
    };
    let target = target::find(settings).await?;
    let mut page = target.runs(&filter).await?;
    if args.count || args.exact {
        page.count = Some(target.count_runs(&filter, args.exact).await?);
    }
    if args.json {
        return Ok(output::json(&page)?);
    }
    if page.runs.is_empty() {
        output::tell("no runs");
        return Ok(());
    }
    let mut waits = waits(&page.runs, &*target).await;
    let rows = page.runs.iter().map(|run| row(run, waits.remove(&run.run_id))).collect();
    output::table(["RUN", "WORKFLOW", "STATUS", "ACCEPTED", "TOOK", "DETAIL"], rows)?;
    if let Some(count) = page.count {
        output::tell(&counted(count));
    }
    if let Some(next) = page.next {
        output::hint(&format!("there may be more: --after {next}"));
    }
    Ok(())
}

/// `1,000+ runs`
pub(crate) fn counted(count: RunCountView) -> String {
    let digits = count.runs.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    let more = if count.more { "+" } else { "" };
    let noun = if count.runs == 1 && !count.more { "run" } else { "runs" };
    format!("{}{more} {noun}", groups.join(","))
}

/// Why the first unfinished runs wait. A run whose waits cannot be read is listed without them.
async fn waits(runs: &[RunRecord], target: &dyn Target) -> HashMap<RunId, String> {
    let mut waits = HashMap::new();
    for run in runs.iter().filter(|run| !run.status.is_terminal()).take(WAITS_MAX) {
        let Ok(RunWaits { waits: found, .. }) = target.waits(run.run_id).await else { continue };
        let more = if found.len() > 1 { format!(" (and {} more)", found.len() - 1) } else { String::new() };
        waits.extend(found.first().map(|reason| (run.run_id, format!("{}{more}", reasons::waiting(reason)))));
    }
    waits
}

fn row(run: &RunRecord, waits: Option<String>) -> [String; 6] {
    [
        run.run_id.to_string(),
        run.workflow.to_string(),
        run.status.to_string(),
        output::moment(run.accepted_at),
        output::or_dash(run.ended_at.map(|ended| output::took(ended.since(run.accepted_at)))),
        waits.or_else(|| run.error.as_ref().map(ToString::to_string)).unwrap_or_default(),
    ]
}
