//! `switchyard patch …`

use switchyard_api::{PatchReport, PatchView};
use switchyard_core::{PatchId, RunId};

use crate::errors::Failure;
use crate::input;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::{self, Settings};
use crate::target::{self, Patch, Target};

/// Change the graph of a run that is under way
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Apply(ApplyArgs),
    List(ListArgs),
    Undo(UndoArgs),
}

const OPERATIONS: &str = "\
Operations, as a list or under `ops`, YAML or JSON:
  - {op: add_node, id: review, node: {type: hitl, needs: [draft]}}
  - {op: update_node, id: send, node: {timeout: 1m}}
  - {op: remove_node, id: extra}
  - {op: add_edge, from: review, to: send}
  - {op: remove_edge, from: draft, to: send}

Example:
  switchyard patch apply run_… ops.yaml --dry-run";

/// Apply operations to the graph of a run, all or none
#[derive(Debug, clap::Args)]
#[command(after_help = OPERATIONS)]
pub(crate) struct ApplyArgs {
    run: RunId,

    /// A file with the operations; `-` is stdin
    ops_file: String,

    /// Why, for the run's history
    #[arg(long, default_value = "")]
    reason: String,

    /// Who changes it; you, if not given
    #[arg(long, value_name = "NAME")]
    author: Option<String>,

    /// The version of the graph that you looked at: refused if it is another by now
    #[arg(long, value_name = "VERSION")]
    seen: Option<u32>,

    /// Only say what would change
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"patch", "version", "diff"}`
    #[arg(long)]
    json: bool,
}

/// List the patches of a run
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard patch list run_…")]
pub(crate) struct ListArgs {
    run: RunId,

    /// Print them as JSON, with operations and diffs
    #[arg(long)]
    json: bool,
}

/// Take a patch back, as long as nothing that it touched has started
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard patch undo run_… patch_…")]
pub(crate) struct UndoArgs {
    run: RunId,

    #[arg(value_parser = patch_id)]
    patch: PatchId,

    /// Who takes it back; you, if not given
    #[arg(long, value_name = "NAME")]
    author: Option<String>,

    /// Only say what would change
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"patch", "version", "diff"}`
    #[arg(long)]
    json: bool,
}

fn patch_id(text: &str) -> Result<PatchId, String> {
    let id = text.strip_prefix("patch_").filter(|id| !id.is_empty());
    id.map(|_| PatchId::new(text)).ok_or_else(|| format!("`{text}` is not a patch id (patch_…)"))
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Apply(args) => apply(args, settings).await,
        Command::List(args) => list(&args, settings).await,
        Command::Undo(args) => undo(args, settings).await,
    }
}

async fn apply(args: ApplyArgs, settings: &Settings) -> Result<(), Failure> {
    let patch = Patch {
        ops: input::operations(&args.ops_file)?,
        seen: args.seen,
        author: author(args.author),
        reason: args.reason,
        dry_run: args.dry_run,
    };
    let target = args.operation.find(settings).await?;
    let report = target.patch(args.run, patch).await.map_err(|failure| failure.about(&args.ops_file))?;
    tell(&report, args.run, args.json, &*target)
}

async fn undo(args: UndoArgs, settings: &Settings) -> Result<(), Failure> {
    let target = args.operation.find(settings).await?;
    let report = target.undo_patch(args.run, &args.patch, &author(args.author), args.dry_run).await?;
    tell(&report, args.run, args.json, &*target)
}

fn author(given: Option<String>) -> String {
    given.unwrap_or_else(settings::user)
}

fn tell(report: &PatchReport, run: RunId, json: bool, target: &dyn Target) -> Result<(), Failure> {
    if json {
        output::json(report)?;
    } else {
        report.diff.iter().try_for_each(|line| output::line(line))?;
    }
    match &report.patch {
        Some(patch) => {
            output::tell(&format!("{patch} made version {} of the graph", report.version));
            super::tell_carry_on(run, target);
        }
        None => output::tell(&format!("dry run: it would make version {} of the graph", report.version)),
    }
    Ok(())
}

async fn list(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    let patches = target::find(settings).await?.patches(args.run).await?;
    if args.json {
        return Ok(output::json(&patches)?);
    }
    if patches.is_empty() {
        output::tell("no patches");
        return Ok(());
    }
    let rows = patches.iter().map(|patch| row(patch, &patches)).collect();
    Ok(output::table(["PATCH", "VERSION", "AUTHOR", "REASON", "UNDONE", "CHANGES"], rows)?)
}

fn row(patch: &PatchView, all: &[PatchView]) -> [String; 6] {
    let undone = all.iter().any(|other| other.undoes.as_ref() == Some(&patch.patch));
    [
        patch.patch.to_string(),
        patch.version.to_string(),
        patch.author.to_string(),
        patch.reason.to_string(),
        if undone { "yes" } else { "no" }.to_owned(),
        patch.diff.join("\n"),
    ]
}
