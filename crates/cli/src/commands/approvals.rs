//! `switchyard approvals …`

use switchyard_api::{Approval, ApprovalStatus};
use switchyard_core::run::Decision;
use switchyard_core::{ApprovalId, RunId};

use super::tell_status;
use crate::errors::Failure;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::{self, Settings};
use crate::target;

/// See what waits for a person, and decide it
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Show(ShowArgs),
    /// Approve: the run goes on
    #[command(after_help = "Example:\n  switchyard approvals approve appr_… --comment 'looks good'")]
    Approve(DecideArgs),
    /// Reject: the node fails
    #[command(after_help = "Example:\n  switchyard approvals reject appr_… --comment 'too risky'")]
    Reject(DecideArgs),
}

/// List approvals that are waited for, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard approvals list --run run_…")]
pub(crate) struct ListArgs {
    /// Only those of this run
    #[arg(long)]
    run: Option<RunId>,

    /// Also those that were decided
    #[arg(long)]
    all: bool,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Show an approval with its payload: what there is to decide on
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard approvals show appr_…")]
pub(crate) struct ShowArgs {
    #[arg(value_parser = approval_id)]
    approval: ApprovalId,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DecideArgs {
    #[arg(value_parser = approval_id)]
    approval: ApprovalId,

    /// Why, for the run's history
    #[arg(long, default_value = "")]
    comment: String,

    /// Who decides; you, if not given
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"run_id", "status"}`
    #[arg(long)]
    json: bool,
}

fn approval_id(text: &str) -> Result<ApprovalId, String> {
    let id = text.strip_prefix("appr_").filter(|id| !id.is_empty());
    id.map(|_| ApprovalId::new(text)).ok_or_else(|| format!("`{text}` is not an approval id (appr_…)"))
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(&args, settings).await,
        Command::Show(args) => show(&args, settings).await,
        Command::Approve(args) => decide(args, Decision::Approved, settings).await,
        Command::Reject(args) => decide(args, Decision::Rejected, settings).await,
    }
}

async fn list(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    let records = target::find(settings).await?.approvals(args.run, args.all).await?;
    if args.json {
        return Ok(output::json(&records)?);
    }
    if records.is_empty() {
        output::tell("no approvals");
        return Ok(());
    }
    Ok(output::table(HEADER, records.iter().map(row).collect())?)
}

const HEADER: [&str; 7] = ["APPROVAL", "RUN", "NODE", "STATUS", "SINCE", "APPROVER", "PROMPT"];

async fn show(args: &ShowArgs, settings: &Settings) -> Result<(), Failure> {
    let approval = target::find(settings).await?.approval(&args.approval).await?;
    if args.json {
        return Ok(output::json(&approval)?);
    }
    output::table(HEADER, vec![row(&approval)])?;
    Ok(output::json_pretty(&approval.payload)?)
}

fn row(record: &Approval) -> [String; 7] {
    [
        record.approval.to_string(),
        record.run.to_string(),
        record.node.to_string(),
        status(record).to_owned(),
        output::moment(record.created_at),
        output::or_dash(record.approver.as_ref()),
        output::or_dash(record.prompt.as_ref()),
    ]
}

fn status(record: &Approval) -> &'static str {
    match record.status {
        ApprovalStatus::Pending => "pending",
        ApprovalStatus::Approved => "approved",
        ApprovalStatus::Rejected => "rejected",
        ApprovalStatus::TimedOut => "timed out",
        ApprovalStatus::Cancelled => "cancelled",
    }
}

async fn decide(args: DecideArgs, decision: Decision, settings: &Settings) -> Result<(), Failure> {
    let by = args.by.unwrap_or_else(settings::user);
    let target = args.operation.find(settings).await?;
    let at = target.decide(&args.approval, decision, &by, &args.comment).await?;
    tell_status(at, args.json, &*target)
}
