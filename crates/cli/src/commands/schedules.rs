//! `switchyard schedules …`

use std::time::Duration;

use switchyard_core::schedule::{CatchUp, Overlap, Schedule, Timetable};
use switchyard_core::yard::Acceptance;
use switchyard_core::{Payload, Timestamp};
use switchyard_lang::duration::HumanDuration;
use switchyard_store::{Clock, ScheduleRecord, StoreError, SystemClock};

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::{input, store};

/// Start workflows by themselves, at times given as cron expressions
///
/// Schedules start runs while a process works in the data folder.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Show(ShowArgs),
    Pause(NameArgs),
    Resume(NameArgs),
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

    /// What to do while the run of an earlier tick is under way
    #[arg(long, value_enum, default_value = "skip")]
    overlap: OverlapArg,

    /// What to do about ticks that passed while nobody worked
    #[arg(long, value_enum, default_value = "last")]
    catch_up: CatchUpArg,
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

/// Which schedule
#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    name: String,
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
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Create(args) => create(args, settings).await,
        Command::List(args) => list(&args, settings).await,
        Command::Show(args) => show(&args, settings).await,
        Command::Pause(args) => pause(&args.name, true, settings).await,
        Command::Resume(args) => pause(&args.name, false, settings).await,
        Command::Remove(args) => remove(&args.name, settings).await,
        Command::Backfill(args) => backfill(&args, settings).await,
    }
}

async fn create(args: CreateArgs, settings: &Settings) -> Result<(), Failure> {
    let schedule = Schedule {
        name: args.name.into(),
        workflow: args.workflow.into(),
        version: args.workflow_version,
        input: Payload::from_value(&input::json("--input", &args.input)?),
        cron: args.cron.into(),
        time_zone: args.time_zone.into(),
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
        paused: false,
    };
    let record = store::once(settings, async |engine| engine.put_schedule(schedule).await).await?;
    tell(&record);
    Ok(())
}

fn tell(record: &ScheduleRecord) {
    let name = &record.schedule.name;
    match (record.schedule.paused, record.next_at) {
        (true, _) => output::tell(&format!("{name}: paused")),
        (false, Some(next)) => output::tell(&format!("{name}: next at {}", output::moment(next))),
        (false, None) => output::tell(&format!("{name}: never again")),
    }
}

async fn list(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    let records = store::peek(settings)?.archive().schedules().await?;
    if args.json {
        return Ok(output::json(&records)?);
    }
    if records.is_empty() {
        output::tell("no schedules");
        return Ok(());
    }
    let header = ["SCHEDULE", "WORKFLOW", "CRON", "TIME ZONE", "NEXT", "LAST RUN"];
    Ok(output::table(header, records.iter().map(row).collect())?)
}

fn row(record: &ScheduleRecord) -> [String; 6] {
    let schedule = &record.schedule;
    let next = if schedule.paused {
        "paused".to_owned()
    } else {
        output::or_dash(record.next_at.map(output::moment))
    };
    [
        schedule.name.to_string(),
        schedule.workflow.to_string(),
        schedule.cron.to_string(),
        schedule.time_zone.to_string(),
        next,
        output::or_dash(record.last_run),
    ]
}

async fn show(args: &ShowArgs, settings: &Settings) -> Result<(), Failure> {
    let record = store::peek(settings)?.archive().schedule(&args.name).await?;
    let record = record.ok_or_else(|| StoreError::unknown("schedule", &args.name))?;
    let timetable = record.schedule.timetable().map_err(|bad| StoreError::Corrupt(bad.to_string()))?;
    let upcoming = upcoming(&record, &timetable, args.next);
    if args.json {
        let mut document = serde_json::json!(record);
        document["upcoming"] =
            serde_json::json!(upcoming.iter().map(Timestamp::to_string).collect::<Vec<_>>());
        return Ok(output::json(&document)?);
    }
    output::table(["SCHEDULE", "WORKFLOW", "CRON", "TIME ZONE", "NEXT", "LAST RUN"], vec![row(&record)])?;
    for tick in upcoming {
        output::line(&output::moment(tick))?;
    }
    Ok(())
}

fn upcoming(record: &ScheduleRecord, timetable: &Timetable, count: usize) -> Vec<Timestamp> {
    let first = timetable.next_after(SystemClock.now());
    let ticks = std::iter::successors(first, |tick| timetable.next_after(*tick));
    ticks.map(|tick| record.schedule.start_at(tick)).take(count).collect()
}

async fn pause(name: &str, paused: bool, settings: &Settings) -> Result<(), Failure> {
    let record = store::once(settings, async |engine| engine.pause_schedule(name, paused).await).await?;
    tell(&record);
    Ok(())
}

async fn remove(name: &str, settings: &Settings) -> Result<(), Failure> {
    store::once(settings, async |engine| engine.remove_schedule(name).await).await?;
    output::tell(&format!("{name}: removed"));
    Ok(())
}

async fn backfill(args: &BackfillArgs, settings: &Settings) -> Result<(), Failure> {
    let (from, until) = (moment("--from", &args.from)?, moment("--until", &args.until)?);
    if until < from {
        return Err(Failure::usage("--until is before --from"));
    }
    let started =
        store::once(settings, async |engine| engine.backfill(&args.name, from, until).await).await?;
    for (tick, acceptance) in &started {
        let word = if matches!(acceptance, Acceptance::New(_)) { "started" } else { "was started before" };
        output::line(&format!("{} {} {word}", output::moment(*tick), acceptance.run()))?;
    }
    if started.is_empty() {
        output::tell("no tick in that time");
    }
    Ok(())
}

fn moment(flag: &str, text: &str) -> Result<Timestamp, Failure> {
    text.parse()
        .map_err(|_| Failure::usage(format!("{flag}: `{text}` is not a time such as 2026-01-31T12:00:00Z")))
}
