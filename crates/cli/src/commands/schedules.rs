//! `switchyard schedules …`

use std::time::Duration;

use switchyard_api::{ScheduleView, TickRun};
use switchyard_base::HumanDuration;
use switchyard_core::Timestamp;
use switchyard_core::schedule::{CatchUp, Overlap};

use crate::errors::Failure;
use crate::input;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::Settings;
use crate::target::{self, NewSchedule};

/// Start workflows by themselves, at times given as cron expressions
///
/// Schedules start runs while a process works in the data folder.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Show(ShowArgs),
    /// Start nothing until it is resumed
    #[command(after_help = "Example:\n  switchyard schedules pause morning")]
    Pause(NameArgs),
    /// Start again, at the next tick
    #[command(after_help = "Example:\n  switchyard schedules resume morning")]
    Resume(NameArgs),
    /// Remove a schedule; runs that it started go on
    #[command(after_help = "Example:\n  switchyard schedules remove morning")]
    Remove(NameArgs),
    Backfill(BackfillArgs),
}

/// Create a schedule, or replace the one of that name
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard workflows register examples/hello.yaml
  switchyard schedules create morning hello --cron '30 9 * * 1-5' --time-zone Europe/Berlin --input '{\"name\": \"Ada\"}'")]
pub(crate) struct CreateArgs {
    name: String,

    /// A registered workflow
    workflow: String,

    /// Minute, hour, day of month, month, day of week
    #[arg(long, value_name = "EXPRESSION")]
    cron: String,

    /// An IANA time zone, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,

    /// The input of its runs, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    input: String,

    /// Start this version of the workflow, instead of the newest
    #[arg(long, value_name = "N")]
    workflow_version: Option<u32>,

    /// Put each start off by a part of this
    #[arg(long, value_name = "DURATION")]
    jitter: Option<HumanDuration>,

    /// A label of its runs; may be given up to 16 times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = input::label)]
    labels: Vec<(String, String)>,

    /// What to do while the run of an earlier tick is under way
    #[arg(long, value_enum, default_value = "skip")]
    overlap: OverlapArg,

    /// What to do about ticks that passed while no server was running
    #[arg(long, value_enum, default_value = "last")]
    catch_up: CatchUpArg,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print the schedule as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OverlapArg {
    /// Leave the tick out
    Skip,
    /// Wait until the run before has ended
    Queue,
    /// Start it all the same
    Allow,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum CatchUpArg {
    /// Leave them out
    Skip,
    /// Start the newest of them
    Last,
    /// Start all of them, oldest first
    All,
}

/// List the schedules
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard schedules list")]
pub(crate) struct ListArgs {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Show a schedule and its next starts
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard schedules show morning --next 10")]
pub(crate) struct ShowArgs {
    name: String,

    /// How many of its next starts to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    next: usize,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    name: String,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print what became of it as JSON
    #[arg(long)]
    json: bool,
}

/// Start the ticks of a span of time that were not started
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  switchyard schedules backfill morning --from 2026-01-01T00:00:00Z --until 2026-01-08T00:00:00Z"
)]
pub(crate) struct BackfillArgs {
    name: String,

    /// The first moment, in RFC 3339
    #[arg(long, value_name = "TIME")]
    from: String,

    /// The last moment
    #[arg(long, value_name = "TIME")]
    until: String,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"runs": […], "next": …}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Create(args) => create(args, settings).await,
        Command::List(args) => list(&args, settings).await,
        Command::Show(args) => show(&args, settings).await,
        Command::Pause(args) => pause(&args, true, settings).await,
        Command::Resume(args) => pause(&args, false, settings).await,
        Command::Remove(args) => remove(&args, settings).await,
        Command::Backfill(args) => backfill(&args, settings).await,
    }
}

async fn create(args: CreateArgs, settings: &Settings) -> Result<(), Failure> {
    let schedule = NewSchedule {
        name: args.name,
        workflow: args.workflow,
        version: args.workflow_version,
        input: input::json("--input", &args.input)?,
        cron: args.cron,
        time_zone: args.time_zone,
        jitter: args.jitter.map_or(Duration::ZERO, |jitter| jitter.0),
        overlap: match args.overlap {
            OverlapArg::Skip => Overlap::Skip,
            OverlapArg::Queue => Overlap::Queue,
            OverlapArg::Allow => Overlap::Allow,
        },
        catch_up: match args.catch_up {
            CatchUpArg::Skip => CatchUp::Skip,
            CatchUpArg::Last => CatchUp::Last,
            CatchUpArg::All => CatchUp::All,
        },
        labels: input::labels(&args.labels),
    };
    tell(&args.operation.find(settings).await?.put_schedule(schedule).await?, args.json)
}

fn tell(schedule: &ScheduleView, json: bool) -> Result<(), Failure> {
    if json {
        output::json(schedule)?;
    }
    let name = &schedule.name;
    match (schedule.paused, schedule.next_at) {
        (true, _) => output::tell(&format!("{name}: paused")),
        (false, Some(next)) => output::tell(&format!("{name}: next at {}", output::moment(next))),
        (false, None) => output::tell(&format!("{name}: never again")),
    }
    Ok(())
}

async fn list(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    let schedules = target::find(settings).await?.schedules().await?;
    if args.json {
        return Ok(output::json(&schedules)?);
    }
    if schedules.is_empty() {
        output::tell("no schedules");
        return Ok(());
    }
    Ok(output::table(HEADER, schedules.iter().map(row).collect())?)
}

const HEADER: [&str; 6] = ["SCHEDULE", "WORKFLOW", "CRON", "TIME ZONE", "NEXT", "LAST RUN"];

fn row(schedule: &ScheduleView) -> [String; 6] {
    let next = if schedule.paused {
        "paused".to_owned()
    } else {
        output::or_dash(schedule.next_at.map(output::moment))
    };
    [
        schedule.name.to_string(),
        schedule.workflow.to_string(),
        schedule.cron.to_string(),
        schedule.time_zone.to_string(),
        next,
        output::or_dash(schedule.last_run),
    ]
}

async fn show(args: &ShowArgs, settings: &Settings) -> Result<(), Failure> {
    let schedule = target::find(settings).await?.schedule(&args.name, args.next).await?;
    if args.json {
        return Ok(output::json(&schedule)?);
    }
    output::table(HEADER, vec![row(&schedule)])?;
    for start in schedule.upcoming.iter().flatten() {
        let shown = start.parse().map_or_else(|_| start.clone(), output::moment);
        output::line(&shown)?;
    }
    Ok(())
}

async fn pause(args: &NameArgs, paused: bool, settings: &Settings) -> Result<(), Failure> {
    tell(&args.operation.find(settings).await?.pause_schedule(&args.name, paused).await?, args.json)
}

async fn remove(args: &NameArgs, settings: &Settings) -> Result<(), Failure> {
    let name = &args.name;
    args.operation.find(settings).await?.remove_schedule(name).await?;
    if args.json {
        output::json(&serde_json::json!({ "name": name, "removed": true }))?;
    }
    output::tell(&format!("{name}: removed"));
    Ok(())
}

async fn backfill(args: &BackfillArgs, settings: &Settings) -> Result<(), Failure> {
    let (from, until) = (moment("--from", &args.from)?, moment("--until", &args.until)?);
    if until < from {
        return Err(Failure::usage("--until is before --from"));
    }
    let started = args.operation.find(settings).await?.backfill(&args.name, from, until).await?;
    if args.json {
        return Ok(output::json(&started)?);
    }
    for TickRun { tick, run_id, started } in &started.runs {
        let word = if *started { "started" } else { "was started before" };
        output::line(&format!("{} {run_id} {word}", output::moment(*tick)))?;
    }
    if started.runs.is_empty() {
        output::tell("no tick in that time");
    }
    if let Some(next) = started.next {
        output::hint(&format!("there are more: --from {next}"));
    }
    Ok(())
}

fn moment(flag: &str, text: &str) -> Result<Timestamp, Failure> {
    text.parse()
        .map_err(|_| Failure::usage(format!("{flag}: `{text}` is not a time such as 2026-01-31T12:00:00Z")))
}
