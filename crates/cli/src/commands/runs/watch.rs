//! `switchyard runs watch`

use switchyard_api::Event;
use switchyard_core::RunId;

use crate::drive::ending;
use crate::errors::Failure;
use crate::progress::Progress;
use crate::reasons::UnservedWatch;
use crate::settings::Settings;
use crate::target::{self, Target};

/// Follow a run that another process works on, from its beginning to its end
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs watch run_…")]
pub(crate) struct Args {
    run: RunId,

    /// Print the same document as `run --json` at the end
    #[arg(long)]
    json: bool,
}

/// Reports that the run waits for an approval, and how to decide it.
fn tell_approval(event: &Event, target: &dyn Target, progress: &Progress) {
    let asked = &event.field("on")["approval"];
    let (Some(node), Some(approval)) = (event.node(), asked["approval"].as_str()) else { return };
    let by = asked["approver"].as_str().map_or(String::new(), |approver| format!(" by {approver}"));
    let prompt = asked["prompt"].as_str().map_or(String::new(), |prompt| format!(": {prompt}"));
    progress.tell(&format!("{node} waits for approval {approval}{by}{prompt}"));
    progress.hint(&format!("{} (or reject)", target.command(&format!("approvals approve {approval}"))));
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let target = target::find(settings).await?;
    let mut progress = Progress::begin(settings, &target.run(args.run, Some(1)).await?);
    let mut news = target.follow(args.run, 0).await?;
    let mut ended = false;
    let mut unserved = UnservedWatch::new(args.run);
    while !ended {
        let events = tokio::select! {
            events = news.next() => events?,
            () = unserved.tick() => {
                unserved.look(&*target, &progress).await;
                continue;
            }
        };
        ended = events.is_empty();
        unserved.note();
        for event in &events {
            progress.note(event);
            tell_approval(event, &*target, &progress);
            // A patched or retried run has other nodes to count.
            if matches!(&*event.kind, "run_patched" | "run_retried") {
                progress.sync(&target.run(args.run, Some(event.seq)).await?);
            }
        }
        // A run that ended may have been retried since.
        if events.last().is_some_and(Event::is_end) {
            ended = target.run(args.run, None).await?.status.is_terminal();
        }
    }
    drop(progress);
    ending::show(target.run(args.run, None).await?, args.json, &*target)
}
