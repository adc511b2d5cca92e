//! `switchyard runs show`

use switchyard_api::{NodeView, RunView};
use switchyard_core::RunId;

use crate::drive::ending;
use crate::errors::Failure;
use crate::output;
use crate::reasons;
use crate::settings::Settings;
use crate::target;

/// The most child runs that are shown for a node.
const CHILDREN_SHOWN: usize = 10;

/// Show a run: where it stands, its nodes, its output; now, or at any point of its history
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs show run_… --at 7")]
pub(crate) struct Args {
    run: RunId,

    /// As it was right after this event
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,

    /// Print everything as one document
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let target = target::find(settings).await?;
    let view = ending::trimmed(target.run(args.run, args.at).await?);
    if args.json {
        return Ok(output::json(&view)?);
    }
    output::line(&facts(&view))?;
    output::table(
        ["NODE", "STATUS", "ATTEMPTS", "STARTED", "TOOK", "DETAIL"],
        view.nodes.0.iter().map(|(id, node)| row(id, node)).collect(),
    )?;
    tell_children(&view)?;
    if view.ended_at.is_some() {
        output::line(&format!("\noutput: {}", view.output))?;
    }
    ending::tell_missing(&view);
    reasons::hints(view.run_id, &view.waiting, &*target).iter().for_each(|hint| output::hint(hint));
    Ok(())
}

/// Prints the child runs of each node, a few of each.
fn tell_children(view: &RunView) -> Result<(), Failure> {
    let with_children: Vec<_> = view.nodes.0.iter().filter(|(_, node)| !node.children.is_empty()).collect();
    if with_children.is_empty() {
        return Ok(());
    }
    output::line("\nchildren")?;
    for (id, node) in with_children {
        for child in node.children.iter().take(CHILDREN_SHOWN) {
            output::line(&format!("  {id}: {} {}", child.run_id, child.status))?;
        }
        if node.children.len() > CHILDREN_SHOWN {
            output::line(&format!("  {id}: … switchyard runs list --parent {}", view.run_id))?;
        }
    }
    Ok(())
}

fn facts(view: &RunView) -> String {
    let mut facts = vec![
        ("run", view.run_id.to_string()),
        ("workflow", view.workflow.to_string()),
        ("status", view.status.to_string()),
        ("accepted", output::moment(view.accepted_at)),
    ];
    let mut add = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    add("priority", view.priority.map(|priority| priority.to_string()));
    add("ended", view.ended_at.map(output::moment));
    add("attempt", (view.attempt > 1).then(|| view.attempt.to_string()));
    let node = view.parent_node.as_ref().map(|node| format!(" (node {node})")).unwrap_or_default();
    add("parent", view.parent.map(|run| format!("{run}{node}")));
    add("schedule", view.schedule.as_ref().map(ToString::to_string));
    add("labels", (!view.labels.is_empty()).then(|| output::labels(&view.labels)));
    add("forked from", view.forked_from.map(|run| run.to_string()));
    add("graph", (view.version > 1).then(|| format!("version {}", view.version)));
    add("events", Some(view.last_seq.to_string()));
    add("error", view.error.as_ref().map(ToString::to_string));
    add("input", Some(view.input.to_string()));
    let waits = view.waiting.iter().map(|reason| ("waiting", reason.to_string()));
    facts.extend(waits);
    let lines: Vec<String> = facts.iter().map(|(name, value)| format!("{name:<12} {value}")).collect();
    format!("{}\n", lines.join("\n"))
}

fn row(id: &str, node: &NodeView) -> [String; 6] {
    let took = node.started_at.zip(node.completed_at).map(|(from, to)| output::took(to.since(from)));
    let detail = node.waiting_for.as_ref().map(|what| format!("waits for {what}"));
    let detail = detail.or(node.error.as_ref().map(ToString::to_string));
    let detail = detail.or(node.cached.then(|| "from the cache".to_owned()));
    [
        id.to_owned(),
        node.status.as_str().to_owned(),
        node.attempts.to_string(),
        output::or_dash(node.started_at.map(output::moment)),
        output::or_dash(took),
        detail.unwrap_or_default(),
    ]
}
