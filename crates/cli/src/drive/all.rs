//! Every unfinished run of a folder, carried to its end.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use switchyard_core::RunId;
use switchyard_core::run::{EventKind, Run, RunStatus};
use switchyard_embedded::Embedded;
use switchyard_runtime::{Engine, EngineError};
use switchyard_store::{ApprovalFilter, ApprovalStatus, Unfinished};

use super::signals::Signals;
use super::{How, close, ending, interrupted, said, trouble};
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// Works until every run has ended. With `json`, a document a line, in the order in which they end.
pub(crate) async fn all_to_end(yard: Embedded, how: How<'_>) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let answer = follow(&yard, how, &mut signals).await;
    close(yard, signals).await;
    answer
}

async fn follow(yard: &Embedded, how: How<'_>, signals: &mut Signals) -> Result<(), Failure> {
    let engine = yard.engine();
    let runs = unfinished(engine, how.settings).await?;
    if runs.is_empty() {
        output::tell("nothing to resume");
        return Ok(());
    }
    output::tell(&format!("took up {}", plural(runs.len())));
    tell_approvals(engine, how.settings).await?;
    let mut ends: FuturesUnordered<_> = runs.into_iter().map(|run| ended(engine, run)).collect();
    let mut failed = 0;
    let mut troubled = yard.work();
    let resume = how.resume("all");
    loop {
        tokio::select! {
            end = ends.next() => match end {
                Some(run) => failed += usize::from(!tell_end(engine, &run?, how).await?),
                None => break,
            },
            exit = signals.next() => return Err(interrupted(exit, &resume)),
            why = said(&mut troubled) => return Err(trouble(&why, &resume)),
        }
    }
    if failed > 0 { Err(Failure::refused(format!("{} did not succeed", plural(failed)))) } else { Ok(()) }
}

/// Runs that nobody else waits for, and that nobody paused.
async fn unfinished(engine: &Engine, settings: &Settings) -> Result<Vec<RunId>, Failure> {
    let mut runs = Vec::new();
    for Unfinished { run, .. } in engine.archive().unfinished().await? {
        match engine.archive().run(run).await? {
            Some(record) if record.parent.is_some() => {}
            Some(record) if record.status == RunStatus::Paused => {
                output::tell(&format!("{run} is paused and left alone"));
                output::hint(&settings.command(&format!("runs resume {run}")));
            }
            _ => runs.push(run),
        }
    }
    Ok(runs)
}

async fn tell_approvals(engine: &Engine, settings: &Settings) -> Result<(), Failure> {
    let pending = ApprovalFilter { run: None, status: Some(ApprovalStatus::Pending) };
    let waiting = engine.archive().approvals(&pending).await?.len();
    if waiting > 0 {
        output::tell(&format!("{waiting} approvals are waited for"));
        output::hint(&format!("stop with Ctrl-C, then {}", settings.command("approvals list")));
    }
    Ok(())
}

async fn ended(engine: &Engine, run: RunId) -> Result<Run, EngineError> {
    let state = engine.state(run).await?;
    let mut news = engine.follow(run, state.seq);
    let mut over = state.is_ended();
    while !over {
        let events = news.next().await?;
        over = events.iter().any(|event| matches!(event.kind, EventKind::RunEnded { .. }));
    }
    engine.state(run).await
}

/// Whether it succeeded.
async fn tell_end(engine: &Engine, run: &Run, how: How<'_>) -> Result<bool, Failure> {
    if how.json {
        ending::document_line(engine.history(), run).await?;
    } else {
        output::line(&format!("{} {}", run.id, run.status()))?;
    }
    match ending::verdict(run, how.settings) {
        Ok(()) => Ok(true),
        Err(failure) => {
            failure.tell();
            Ok(false)
        }
    }
}

fn plural(runs: usize) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}
