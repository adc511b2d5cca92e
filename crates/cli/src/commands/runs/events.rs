//! `switchyard runs events`

use switchyard_api::Event;
use switchyard_core::RunId;

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::target;

/// The longest part of an event's data that the table shows.
const DATA_CHARS_MAX: usize = 120;

/// Print the history of a run
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs events run_… --json | jq .type")]
pub(crate) struct Args {
    run: RunId,

    /// Only events after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,

    /// One JSON document a line
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let target = target::find(settings).await?;
    let mut after = args.after;
    loop {
        let events = target.events(args.run, after).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.seq;
        for event in &events {
            if args.json {
                output::json_line(event)?;
            } else {
                output::line(&plain(event)?)?;
            }
        }
    }
}

/// Formats an event with fixed-width columns, because events are printed while the history is read.
fn plain(event: &Event) -> Result<String, Failure> {
    let mut data =
        if event.fields.is_empty() { String::new() } else { serde_json::to_string(&event.fields)? };
    if let Some((end, _)) = data.char_indices().nth(DATA_CHARS_MAX) {
        data.truncate(end);
        data.push('…');
    }
    Ok(format!("{:>5}  {}  {:<17} {data}", event.seq, event.at, event.kind).trim_end().to_owned())
}
