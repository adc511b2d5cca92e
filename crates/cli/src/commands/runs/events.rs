//! `switchyard runs events`

use switchyard_core::RunId;
use switchyard_core::run::Event;

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::store;

/// Events are read in pieces, so that a long history is not held at once.
const PIECE: usize = 1_000;

/// How much of an event's data a table shows.
const DATA_CHARS_MAX: usize = 120;

/// Print the history of a run
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs events run_… --json | jq .kind")]
pub(crate) struct Args {
    run: RunId,

    /// Only events after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,

    /// One JSON document a line, as stored
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let history = store::peek(settings)?;
    let known = history.archive().run(args.run).await?;
    known.ok_or(switchyard_runtime::EngineError::UnknownRun(args.run))?;
    let mut after = args.after;
    loop {
        let events = history.archive().events(args.run, after, PIECE).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.seq;
        for event in &events {
            if args.json {
                output::json_line(event)?;
            } else {
                output::line(&plain(event))?;
            }
        }
    }
}

/// Columns of fixed width: a history is printed as it is read.
fn plain(event: &Event) -> String {
    let data = serde_json::to_value(&event.kind).ok().and_then(|kind| match kind {
        // The name stands in its own column.
        serde_json::Value::Object(map) => map.into_iter().next().map(|(_, data)| data.to_string()),
        _ => None,
    });
    let mut data = data.filter(|data| data != "{}").unwrap_or_default();
    if let Some((end, _)) = data.char_indices().nth(DATA_CHARS_MAX) {
        data.truncate(end);
        data.push('…');
    }
    format!("{:>5}  {}  {:<17} {data}", event.seq, event.at, event.kind.name()).trim_end().to_owned()
}
