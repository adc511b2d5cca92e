//! `switchyard bulk …`, and the `--filter` of commands on runs.

use switchyard_api::{BulkPreview, BulkView};
use switchyard_store::{BulkAction, BulkResult, Clock, RunFilter, SystemClock};

use crate::commands::runs::list::counted;
use crate::errors::Failure;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::Settings;
use crate::target;

/// The most results that are shown.
const RESULTS_SHOWN: usize = 1_000;

/// Look at jobs that do something to every run of a filter
///
/// `runs cancel|pause|resume|retry|fork|delete --filter …` starts one.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Show(ShowArgs),
    Stop(StopArgs),
}

/// List bulk jobs, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard bulk list")]
pub(crate) struct ListArgs {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Show a bulk job: how far it is, and what it came to for each run
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard bulk show bulk_…")]
pub(crate) struct ShowArgs {
    job: String,

    /// Print the job and its results as JSON
    #[arg(long)]
    json: bool,
}

/// Stop a bulk job; what it has done stays done
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard bulk stop bulk_…")]
pub(crate) struct StopArgs {
    job: String,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print the job as JSON
    #[arg(long)]
    json: bool,
}

/// Which runs, instead of one.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct BulkArgs {
    /// Every run that these conditions hold for: `status=failed label=team=search created_after=24h`
    #[arg(long, value_name = "CONDITIONS", conflicts_with = "run")]
    filter: Option<String>,

    /// With --filter: only say how many runs there are, and show a few
    #[arg(long, requires = "filter")]
    dry_run: bool,
}

impl BulkArgs {
    /// The filter, if it is given.
    pub(crate) fn read(&self) -> Result<Option<RunFilter>, Failure> {
        let Some(text) = &self.filter else { return Ok(None) };
        let filter = RunFilter::parse(text, SystemClock.now());
        filter.map(Some).map_err(|bad| Failure::usage(bad.to_string()))
    }

    /// Starts the job, or with `--dry-run` shows what it would do.
    pub(crate) async fn start(
        &self,
        action: BulkAction,
        filter: &RunFilter,
        operation: &OperationArgs,
        settings: &Settings,
        json: bool,
    ) -> Result<(), Failure> {
        let target = operation.find(settings).await?;
        if self.dry_run {
            return tell_preview(&target.preview_bulk(&action, filter).await?, json);
        }
        let job = target.start_bulk(&action, filter).await?;
        tell(&job, json)?;
        if job.job.ended_at.is_none() {
            output::hint(&target.command(&format!("bulk show {}", job.job.id)));
        }
        Ok(())
    }
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(&args, settings).await,
        Command::Show(args) => show(&args, settings).await,
        Command::Stop(args) => {
            let job = args.operation.find(settings).await?.stop_bulk(&args.job).await?;
            tell(&job, args.json)
        }
    }
}

async fn list(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    let jobs = target::find(settings).await?.bulk_jobs(args.limit as usize).await?;
    if args.json {
        return Ok(output::json(&jobs)?);
    }
    if jobs.is_empty() {
        output::tell("no bulk jobs");
        return Ok(());
    }
    let header = ["JOB", "ACTION", "STATUS", "DONE", "SKIPPED", "FAILED", "STARTED", "FILTER"];
    Ok(output::table(header, jobs.iter().map(row).collect())?)
}

fn row(view: &BulkView) -> [String; 8] {
    let (job, counts) = (&view.job, view.counts);
    [
        job.id.to_string(),
        job.action.name().to_owned(),
        job.status.as_str().to_owned(),
        counts.done.to_string(),
        counts.skipped.to_string(),
        counts.failed.to_string(),
        output::moment(job.created_at),
        job.filter.to_string(),
    ]
}

async fn show(args: &ShowArgs, settings: &Settings) -> Result<(), Failure> {
    let target = target::find(settings).await?;
    let job = target.bulk_job(&args.job).await?;
    let results = target.bulk_results(&args.job, RESULTS_SHOWN).await?;
    if args.json {
        let mut document = serde_json::to_value(&job)?;
        document["results"] = serde_json::to_value(&results)?;
        return Ok(output::json(&document)?);
    }
    tell(&job, false)?;
    if results.is_empty() {
        return Ok(());
    }
    Ok(output::table(["RUN", "OUTCOME", "DETAIL"], results.iter().map(result_row).collect())?)
}

fn result_row(result: &BulkResult) -> [String; 3] {
    let detail = result.detail.as_deref().unwrap_or_default().to_owned();
    [result.run_id.to_string(), result.outcome.as_str().to_owned(), detail]
}

fn tell(view: &BulkView, json: bool) -> Result<(), Failure> {
    if json {
        output::json(view)?;
    }
    let (job, counts) = (&view.job, view.counts);
    output::tell(&format!(
        "{}: {} {}, {} done, {} skipped, {} failed",
        job.id,
        job.action.name(),
        job.status.as_str(),
        counts.done,
        counts.skipped,
        counts.failed
    ));
    Ok(())
}

fn tell_preview(preview: &BulkPreview, json: bool) -> Result<(), Failure> {
    if json {
        return Ok(output::json(preview)?);
    }
    output::tell(&format!("{} would be worked on", counted(preview.count)));
    if preview.sample.is_empty() {
        return Ok(());
    }
    let rows = preview
        .sample
        .iter()
        .map(|run| [run.run_id.to_string(), run.workflow.to_string(), run.status.to_string()]);
    Ok(output::table(["RUN", "WORKFLOW", "STATUS"], rows.collect())?)
}
