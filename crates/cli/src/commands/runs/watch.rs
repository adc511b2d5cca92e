//! `switchyard runs watch`

use std::time::Duration;

use switchyard_core::RunId;
use switchyard_core::run::EventKind;

use crate::drive::ending;
use crate::errors::Failure;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::store;

/// How often the history is looked at: another process writes it, and tells nobody.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Follow a run that another process works on, from its beginning to its end
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs watch run_…")]
pub(crate) struct Args {
    run: RunId,

    /// Print the same document as `run --json` at the end
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let history = store::peek(settings)?;
    let mut progress = Progress::begin(settings, &history.state(args.run, Some(1)).await?);
    let mut seen = 0;
    let mut ended = false;
    loop {
        let events = history.events(args.run, seen, None).await?;
        for event in &events {
            progress.note(event);
            seen = event.seq;
            match event.kind {
                // The nodes that are to be counted are others now.
                EventKind::RunPatched(_) => progress.sync(&history.state(args.run, Some(seen)).await?),
                EventKind::RunRetried { .. } => {
                    ended = false;
                    progress.sync(&history.state(args.run, Some(seen)).await?);
                }
                EventKind::RunEnded { .. } => ended = true,
                _ => {}
            }
        }
        if ended {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    drop(progress);
    let run = history.state(args.run, None).await?;
    ending::show(&history, &run, args.json, settings).await
}
