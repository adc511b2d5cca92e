//! `switchyard run`

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use switchyard_base::HumanDuration;
use switchyard_core::run::{Concurrency, RunStatus};
use switchyard_core::{RunId, Timestamp};
use switchyard_lang::Program;
use switchyard_runtime::Start;

use crate::drive::{self, How, Since};
use crate::errors::Failure;
use crate::flags::WorkArgs;
use crate::input::{self, InputArgs};
use crate::output;
use crate::settings::Settings;
use crate::target::{self, Opening, Source, Target, Wanted};

const EXAMPLES: &str = "\
Examples:
  switchyard run examples/hello.yaml --input '{\"name\": \"Ada\"}'
  switchyard run examples/hello.yaml -i name=Ada --json
  switchyard run --resume all";

/// Run a workflow to its end: in the server, if one answers, else in this process
///
/// The output goes to stdout, progress to stderr. In a server, the run goes on after Ctrl-C: `runs watch` follows it
/// again, `runs cancel` stops it. In this process, Ctrl-C leaves the run resumable; a second one exits at once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The workflow: a YAML or JSON file, `-` for stdin, or the name of a registered workflow
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    file: Option<String>,

    /// Carry on a run that was interrupted, or `all` of them
    #[arg(long, value_name = "RUN|all", conflicts_with_all = ["InputArgs", "LimitArgs", "detach"])]
    resume: Option<Resume>,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    _work: WorkArgs,

    /// Print one document with the run's status, output, error and nodes
    #[arg(long)]
    json: bool,

    /// Only accept the run and print its id; it goes on with `--resume`
    #[arg(long)]
    detach: bool,
}

#[derive(Clone, Debug, Default, clap::Args)]
#[group(multiple = true)]
struct LimitArgs {
    /// The same key with the same workflow and input answers the same run
    #[arg(long, value_name = "KEY", alias = "operation-id")]
    idempotency_key: Option<String>,

    /// Runs with the same key share a limit; the others wait in line
    #[arg(long, value_name = "KEY", requires = "concurrency_limit")]
    concurrency_key: Option<String>,

    /// How many runs with the key may be under way
    #[arg(long, value_name = "N", requires = "concurrency_key")]
    concurrency_limit: Option<NonZeroU32>,

    /// Start no node before this moment, such as `2027-01-31T09:00:00Z`
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    start_at: Option<Timestamp>,

    /// Start the first nodes after this time, such as `1h30m`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    delay: Option<HumanDuration>,

    /// Priority of the nodes that have none of their own, 1 (last) to 10 (first)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=10))]
    priority: Option<u8>,

    /// The run fails if it has not ended so long after its start, such as `10m`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    deadline: Option<HumanDuration>,

    /// How many nodes of the run may be active at once
    #[arg(long, value_name = "N")]
    parallelism: Option<NonZeroU32>,

    /// A word to find the run by; may be given up to 16 times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = input::label)]
    labels: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
enum Resume {
    All,
    One(RunId),
}

impl std::str::FromStr for Resume {
    type Err = switchyard_core::ids::InvalidId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

fn duration(text: &str) -> Result<HumanDuration, String> {
    text.parse().map_err(|error: switchyard_base::BadDuration| format!("{error}; {}", error.hint))
}

pub(crate) async fn execute(args: Args, settings: &Settings) -> Result<(), Failure> {
    let how = How { settings, json: args.json };
    match (&args.resume, &args.file) {
        (Some(Resume::All), _) => {
            let mut target = target::find(settings).await?;
            target.open(Opening { create: false }).await?;
            drive::all_to_end(&mut *target, how).await
        }
        (Some(Resume::One(run)), _) => resume(*run, how).await,
        (None, Some(file)) => start(file, &args, how).await,
        (None, None) => Err(Failure::usage("say which workflow to run")),
    }
}

async fn resume(run: RunId, how: How<'_>) -> Result<(), Failure> {
    let mut target = target::find(how.settings).await?;
    target.open(Opening { create: false }).await?;
    let status = target.run(run, None).await?.status;
    if status == RunStatus::Paused {
        return Err(
            Failure::refused(format!("{run} is paused")).hint(target.command(&format!("runs resume {run}")))
        );
    }
    drive::tell_others(target.taken_up().saturating_sub(usize::from(!status.is_terminal())));
    drive::to_end(&mut *target, run, Since::Now, how).await
}

async fn start(file: &str, args: &Args, how: How<'_>) -> Result<(), Failure> {
    // All arguments are checked before the folder is opened.
    let input = args.input.read()?;
    let program = if is_file(file) { Some(input::program(file)?) } else { None };
    if let Some(program) = &program {
        check_input(program, &input)?;
    }
    let mut target = target::find(how.settings).await?;
    let workflow = match program {
        Some(program) => Source::Program(Arc::new(program)),
        None => registered(file, &*target).await?,
    };
    target.open(Opening { create: true }).await?;
    drive::tell_others(target.taken_up());
    let wanted = args.limits.apply(workflow, input);
    let taken = target.submit(&wanted).await.map_err(|failure| failure.about("the input"))?;
    let run = taken.run;
    if taken.before {
        output::tell(&format!("the idempotency key was used before, for {run}"));
    }
    let since = if taken.before { Since::Now } else { Since::Event(1) };
    match args.detach {
        true => drive::detach(&mut *target, run, how).await,
        false => drive::to_end(&mut *target, run, since, how).await,
    }
}

fn is_file(file: &str) -> bool {
    file == "-" || Path::new(file).exists()
}

/// Finds a registered workflow by its name; it must exist.
async fn registered(name: &str, target: &dyn Target) -> Result<Source, Failure> {
    let unknown = || {
        Failure::usage(format!("there is neither a file nor a registered workflow `{name}`"))
            .hint(target.command("workflows list"))
    };
    match target.definition(name, None).await {
        Ok(_) => Ok(Source::Named(name.to_owned())),
        // If the server does not answer, its failure is more helpful than `unknown`.
        Err(failure) if target.is_worked_at() && failure.is_store() => Err(failure),
        Err(_) => Err(unknown()),
    }
}

fn check_input(program: &Program, input: &Value) -> Result<(), Failure> {
    let checked = program.prepare_input(input.clone()).map(drop);
    checked.map_err(|diagnostics| Failure::invalid("the input", diagnostics, None))
}

impl LimitArgs {
    fn start(&self) -> Option<Start> {
        self.start_at.map(Start::At).or(self.delay.map(|delay| Start::After(delay.0)))
    }

    fn apply(&self, workflow: Source, input: Value) -> Wanted {
        let concurrency = self.concurrency_key.as_deref().zip(self.concurrency_limit);
        Wanted {
            workflow,
            input,
            idempotency_key: self.idempotency_key.clone(),
            concurrency: concurrency.map(|(key, limit)| Concurrency { key: key.into(), limit: limit.get() }),
            start: self.start(),
            priority: self.priority,
            deadline: self.deadline.map(|deadline| deadline.0),
            parallelism: self.parallelism,
            labels: input::labels(&self.labels),
        }
    }
}
