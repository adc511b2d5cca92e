//! `switchyard run`

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use switchyard_core::RunId;
use switchyard_core::run::{Concurrency, RunStatus};
use switchyard_core::yard::Acceptance;
use switchyard_embedded::Embedded;
use switchyard_lang::Program;
use switchyard_lang::duration::HumanDuration;
use switchyard_runtime::{EngineError, Submission};

use crate::drive::{self, How};
use crate::errors::Failure;
use crate::flags::WorkArgs;
use crate::input::{self, InputArgs};
use crate::output;
use crate::settings::Settings;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  switchyard run examples/hello.yaml --input '{\"name\": \"Ada\"}'
  switchyard run examples/hello.yaml -i name=Ada --json
  switchyard run --resume all";

/// Run a workflow in this process, to its end
///
/// The output goes to stdout, progress to stderr. Ctrl-C leaves the run resumable; a second one exits at once.
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
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,

    /// Runs with the same key share a limit; the others wait in line
    #[arg(long, value_name = "KEY", requires = "concurrency_limit")]
    concurrency_key: Option<String>,

    /// How many runs with the key may be under way
    #[arg(long, value_name = "N", requires = "concurrency_key")]
    concurrency_limit: Option<NonZeroU32>,

    /// The run fails if it has not ended after this time, such as `10m`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    deadline: Option<HumanDuration>,

    /// How many nodes of the run may be in play at once
    #[arg(long, value_name = "N")]
    parallelism: Option<NonZeroU32>,
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
    text.parse().map_err(|error: switchyard_lang::duration::BadDuration| format!("{error}; {}", error.hint))
}

pub(crate) async fn execute(args: Args, settings: &Settings) -> Result<(), Failure> {
    let how = How { settings, json: args.json };
    match (&args.resume, &args.file) {
        (Some(Resume::All), _) => {
            let yard = store::open_existing(settings).await?;
            drive::all_to_end(yard, how).await
        }
        (Some(Resume::One(run)), _) => resume(*run, how).await,
        (None, Some(file)) => start(file, &args, how).await,
        (None, None) => Err(Failure::usage("say which workflow to run")),
    }
}

async fn resume(run: RunId, how: How<'_>) -> Result<(), Failure> {
    let yard = store::open_existing(how.settings).await?;
    let status = yard.engine().state(run).await?.status();
    if status == RunStatus::Paused {
        return Err(Failure::refused(format!("{run} is paused"))
            .hint(how.settings.command(&format!("runs resume {run}"))));
    }
    drive::tell_recovered(&yard, usize::from(!status.is_terminal()));
    drive::to_end(yard, run, how).await
}

async fn start(file: &str, args: &Args, how: How<'_>) -> Result<(), Failure> {
    // Everything that can be wrong with what was typed is found before the folder is touched.
    let input = args.input.read()?;
    let found = if is_file(file) { Some(input::program(file)?) } else { None };
    let (yard, program, version) = match found {
        Some(program) => {
            check_input(&program, &input)?;
            (store::open(how.settings).await?, Arc::new(program), None)
        }
        None => registered(file, how.settings).await?,
    };
    drive::tell_recovered(&yard, 0);
    let mut submission = args.limits.apply(Submission::new(program, input));
    submission.workflow_version = version;
    let run = match yard.engine().submit(submission).await.map_err(bad_input)? {
        Acceptance::New(run) => run,
        Acceptance::Existing(run) => {
            output::tell(&format!("the idempotency key was used before, for {run}"));
            run
        }
    };
    if args.detach { drive::detach(yard, run, how).await } else { drive::to_end(yard, run, how).await }
}

fn is_file(file: &str) -> bool {
    file == "-" || Path::new(file).exists()
}

/// A workflow by its name, with the folder that has it.
async fn registered(
    name: &str,
    settings: &Settings,
) -> Result<(Embedded, Arc<Program>, Option<u32>), Failure> {
    let unknown = || {
        Failure::usage(format!("there is neither a file nor a registered workflow `{name}`"))
            .hint(settings.command("workflows list"))
    };
    let history = store::peek(settings).map_err(|_| unknown())?;
    let record = history.archive().workflow(name, None).await?.ok_or_else(unknown)?;
    let yard = store::open(settings).await?;
    let program = yard.engine().catalog().get(record.definition).await.map_err(EngineError::from)?;
    Ok((yard, program, Some(record.version)))
}

fn check_input(program: &Program, input: &serde_json::Value) -> Result<(), Failure> {
    let checked = program.prepare_input(input.clone()).map(drop);
    checked.map_err(|diagnostics| bad_input(EngineError::Invalid(diagnostics)))
}

fn bad_input(error: EngineError) -> Failure {
    match error {
        EngineError::Invalid(diagnostics) => Failure::invalid("the input", diagnostics, None),
        other => other.into(),
    }
}

impl LimitArgs {
    fn apply(&self, submission: Submission) -> Submission {
        let concurrency = self.concurrency_key.as_deref().zip(self.concurrency_limit);
        Submission {
            idempotency_key: self.idempotency_key.clone(),
            concurrency: concurrency.map(|(key, limit)| Concurrency { key: key.into(), limit: limit.get() }),
            deadline: self.deadline.map(|deadline| deadline.0),
            parallelism: self.parallelism.map(NonZeroU32::get),
            ..submission
        }
    }
}
