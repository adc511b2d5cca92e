//! `switchyard runs logs`

use switchyard_api::{Event, LogPage, LoggedLines};
use switchyard_core::RunId;
use switchyard_core::run::LogLevel;

use crate::errors::Failure;
use crate::escape;
use crate::output;
use crate::settings::Settings;
use crate::target::{self, LogsQuery, Target};

/// Print what the steps of a run have logged
///
/// Handlers log through the SDK, workers over HTTP with POST /v1/tasks/logs; of `command` nodes it is what their programs
/// write to stderr. An attempt keeps 2,000 lines and 256 KiB.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs logs run_… --node fetch --follow")]
pub(crate) struct Args {
    run: RunId,

    /// Only lines of this node
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Only lines of this attempt
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,

    /// Go on with what is logged from now on, until the run ends
    #[arg(long, short)]
    follow: bool,

    /// One JSON document for all lines that were logged together
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let target = target::find(settings).await?;
    let mut query = LogsQuery { node: args.node.clone(), attempt: args.attempt, after: 0 };
    let page = print(args, &*target, &mut query).await?;
    if args.follow && !page.ended {
        follow(args, &*target, query).await?;
    }
    Ok(())
}

/// Prints all lines after `query.after`, and advances it.
async fn print(args: &Args, target: &dyn Target, query: &mut LogsQuery) -> Result<LogPage, Failure> {
    loop {
        let page = target.logs(args.run, query).await?;
        query.after = page.last;
        for logged in &page.logs {
            show(args, logged)?;
        }
        if page.next.is_none() {
            return Ok(page);
        }
    }
}

async fn follow(args: &Args, target: &dyn Target, mut query: LogsQuery) -> Result<(), Failure> {
    let mut news = target.follow(args.run, query.after).await?;
    loop {
        let events = news.next().await?;
        if events.is_empty() {
            return Ok(());
        }
        let ended = events.last().is_some_and(Event::is_end);
        if ended || events.iter().any(|event| &*event.kind == "node_logged") {
            let page = print(args, target, &mut query).await?;
            // A run that ended may have been retried since.
            if ended && page.ended {
                return Ok(());
            }
        }
    }
}

fn show(args: &Args, logged: &LoggedLines) -> Result<(), Failure> {
    if args.json {
        return Ok(output::json_line(logged)?);
    }
    let node = match logged.attempt {
        1 => logged.node.to_string(),
        attempt => format!("{}#{attempt}", logged.node),
    };
    for line in &logged.lines {
        let level = line.level.map_or("-", LogLevel::as_str);
        let message = escape::one_line(&line.message);
        output::line(format!("{}  {node}  {level:<5}  {message}", line.at).trim_end())?;
    }
    if logged.truncated {
        output::tell(&format!("{node} logged more than is kept; the rest was dropped"));
    }
    if let Some(why) = &logged.missing {
        output::tell(&format!("lines of {node} cannot be brought back: {why}"));
    }
    Ok(())
}
