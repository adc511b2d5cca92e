//! `switchyard inspect`

use serde_json::{Map, Value, json};
use switchyard_core::RunId;
use switchyard_core::run::{NodeRun, Run, Waiting};
use switchyard_runtime::History;
use switchyard_store_redis::InspectedKey;

use crate::errors::Failure;
use crate::flags::StoreArgs;
use crate::output;
use crate::settings::Settings;
use crate::store;
use crate::stores;

/// Show every key of a run in Redis, decoded; of a data folder, what its history folds to
///
/// Names follow from the run's id and from what lies under them: Redis is asked for those keys and nothing is searched
/// for. docs/reference/keys.md says what each is. A run that has ended is in the archive alone: `runs show` has it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard inspect run_06d2c0t6v3k7j1q9x5m8w4z2ab --redis redis://127.0.0.1
  switchyard inspect run_06d2c0t6v3k7j1q9x5m8w4z2ab --json")]
pub(crate) struct Args {
    #[command(flatten)]
    _stores: StoreArgs,

    /// Its id
    run: RunId,

    /// Print `{"run_id", "keys"}`, or of a folder `{"run_id", "state", "record"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    if settings.redis.is_some() {
        in_redis(args, settings).await
    } else {
        in_folder(args, &store::peek(settings)?).await
    }
}

async fn in_redis(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let keys = stores::admin(settings).await?.inspect(args.run).await?;
    if keys.is_empty() {
        return Err(Failure::usage(format!("Redis has nothing of {}", args.run))
            .hint(format!("if it has ended: {}", settings.command(&format!("runs show {}", args.run)))));
    }
    if args.json {
        return Ok(output::json(&json!({ "run_id": args.run, "keys": keys }))?);
    }
    keys.iter().try_for_each(show)
}

fn show(shown: &InspectedKey) -> Result<(), Failure> {
    let ttl = shown.ttl_ms.map_or(String::new(), |ttl| format!(", for another {ttl} ms"));
    output::line(&format!("{} ({}{ttl})", shown.key, shown.kind))?;
    fields(&shown.value)
}

fn fields(value: &Map<String, Value>) -> Result<(), Failure> {
    let width = value.keys().map(String::len).max().unwrap_or(0);
    for (field, value) in value {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        output::line(&format!("  {field:<width$}  {text}"))?;
    }
    Ok(())
}

/// Shows a run of a data folder: its state in memory is exactly what its history folds to.
async fn in_folder(args: &Args, history: &History) -> Result<(), Failure> {
    let run = history.state(args.run, None).await?;
    let record = history.run(args.run).await?;
    let (state, record) = (state(&run), serde_json::to_value(record)?);
    if args.json {
        return Ok(output::json(&json!({ "run_id": args.run, "state": state, "record": record }))?);
    }
    output::line(&format!("{} (folded from {} events)", args.run, run.seq))?;
    fields(&state)?;
    output::line("its row in the archive")?;
    fields(record.as_object().unwrap_or(&Map::new()))
}

fn state(run: &Run) -> Map<String, Value> {
    let mut state = Map::new();
    let mut put = |name: &str, value: Value| state.insert(name.to_owned(), value);
    put("phase", json!(run.status()));
    put("seq", json!(run.seq));
    put("counter", json!(run.counter));
    put("approvals", json!(run.approvals));
    put("definition", json!(run.ir.hash));
    put("version", json!(run.version));
    put("attempt", json!(run.attempt));
    for ix in run.ir.indices() {
        put(&format!("node {}", run.ir.node(ix).id), node(run.node(ix)));
    }
    state
}

/// A node in the format of a line of `dag:{run}`.
fn node(node: &NodeRun) -> Value {
    json!({
        "state": node.state, "attempt": node.attempt, "claim": node.claim, "continues": node.continues,
        "deliveries": node.deliveries, "open": node.open_needs, "fired": node.fired,
        "started": node.started_at, "completed": node.completed_at, "ended": node.ended_seq, "wait": node.wait.as_deref().map(wait),
    })
}

/// What a node waits for. Child runs are counted instead of listed.
fn wait(wait: &Waiting) -> Value {
    match wait {
        Waiting::Retry { until } => json!({ "retry": { "until": until } }),
        Waiting::For(what) => json!({ "for": what }),
        Waiting::Children(children) => json!({ "children": {
            "count": children.count, "started": children.started, "ended": children.ended,
        } }),
        Waiting::Gathered(gathered) => json!({ "gathered": { "count": gathered.count } }),
    }
}
