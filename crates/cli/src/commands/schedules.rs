//! `switchyard schedules …`

use std::time::Duration;

use switchyard_api::{ScheduleView, StartOutcomeName, StartView, TickRun};
use switchyard_base::HumanDuration;
use switchyard_core::Timestamp;
use switchyard_core::schedule::{CatchUp, Overlap};

use crate::errors::Failure;
use crate::input;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::Settings;
use crate::target::{self, NewSchedule};

/// Start workflows at times given as cron expressions or intervals
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
    /// Start its workflow now, with its input
    ///
    /// Also while the schedule is paused, and while the run of an earlier tick is under way.
    #[command(after_help = "Example:\n  switchyard schedules run morning")]
    Run(NameArgs),
    Backfill(BackfillArgs),
}

/// Create a schedule, or replace the one of that name
#[derive(Debug, clap::Args)]
#[command(after_help = r#"Examples:
  switchyard workflows register examples/hello.yaml
  switchyard schedules create morning hello --cron '30 9 * * 1-5' --time-zone Europe/Berlin --input '{"name": "Ada"}'
  switchyard schedules create poll hello --cron '@every 10s'"#)]
pub(crate) struct CreateArgs {
    name: String,

    /// A registered workflow
    workflow: String,

    /// When to start: `30 9 * * 1-5` (minute, hour, day, month, weekday), `*/10 * * * * *` (with the second in front),
    /// `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly` or `@every 10s`; may be given several times
    #[arg(long, value_name = "EXPRESSION", required = true)]
    cron: Vec<String>,

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

/// Show a schedule, its next starts, and what became of the last
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard schedules show morning --next 10")]
pub(crate) struct ShowArgs {
    name: String,

    /// How many of its next starts to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    next: usize,

    /// How many of its last starts to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    last: usize,

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
        Command::Run(args) => run(&args, settings).await,
        Command::Backfill(args) => backfill(&args, settings).await,
    }
}

async fn create(args: CreateArgs, settings: &Settings) -> Result<(), Failure> {
    let schedule = NewSchedule {
        name: args.name,
        workflow: args.workflow,
        version: args.workflow_version,
        input: input::json("--input", &args.input)?,
        cron: args.cron.join("\n"),
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
        one_line(&schedule.cron),
        schedule.time_zone.to_string(),
        next,
        output::or_dash(schedule.last_run),
    ]
}

/// Joins the cron lines of a schedule into one, for a table.
fn one_line(cron: &str) -> String {
    cron.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

async fn show(args: &ShowArgs, settings: &Settings) -> Result<(), Failure> {
    let schedule = target::find(settings).await?.schedule(&args.name, args.next, args.last).await?;
    if args.json {
        return Ok(output::json(&schedule)?);
    }
    output::table(HEADER, vec![row(&schedule)])?;
    output::line(&policies(&schedule))?;
    output::line("next:")?;
    for start in schedule.upcoming.iter().flatten() {
        let shown = start.parse().map_or_else(|_| start.clone(), output::moment);
        output::line(&format!("  {shown}"))?;
    }
    let starts = schedule.starts.as_deref().unwrap_or_default();
    if !starts.is_empty() {
        output::line("last:")?;
    }
    for start in starts {
        output::line(&format!("  {} {}", output::moment(start.tick), outcome(start)))?;
    }
    Ok(())
}

/// Describes the policies of a schedule, such as overlap and catch-up.
fn policies(schedule: &ScheduleView) -> String {
    let overlap = match schedule.overlap {
        Overlap::Skip => "skip",
        Overlap::Queue => "queue",
        Overlap::Allow => "allow",
    };
    let catch_up = match schedule.catch_up {
        CatchUp::Skip => "skip",
        CatchUp::Last => "last",
        CatchUp::All => "all",
    };
    format!("jitter {}, overlap {overlap}, catch-up {catch_up}", schedule.jitter)
}

/// Describes the outcome of a tick.
fn outcome(start: &StartView) -> String {
    let by = start.by.as_deref().map_or_else(String::new, |by| format!(" by {by}"));
    match start.outcome {
        StartOutcomeName::Started => format!("started {}{by}", output::or_dash(start.run_id)),
        StartOutcomeName::Skipped => "skipped: the run before was still under way".to_owned(),
        StartOutcomeName::Failed => {
            let tries = if start.tries > 1 { format!(" ({} tries)", start.tries) } else { String::new() };
            format!("failed{tries}: {}", start.error.as_deref().unwrap_or("unknown"))
        }
    }
}

async fn run(args: &NameArgs, settings: &Settings) -> Result<(), Failure> {
    let started = args.operation.find(settings).await?.run_schedule(&args.name).await?;
    if args.json {
        return Ok(output::json(&started)?);
    }
    output::line(&started.run_id.to_string())?;
    output::hint(&format!("follow it with `switchyard runs watch {}`", started.run_id));
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
