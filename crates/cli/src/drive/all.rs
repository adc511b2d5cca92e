//! Follows every unfinished run to its end.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use switchyard_api::{RunAt, RunView};
use switchyard_core::RunId;
use switchyard_core::run::RunStatus;

use super::signals::Signals;
use super::{How, close, ending, interrupted, trouble, troubled};
use crate::errors::{Exit, Failure};
use crate::output;
use crate::target::Target;

/// Follows all unfinished runs until they have ended; in a folder, this process executes them. With `json`, prints one
/// document per line, in the order in which the runs end.
pub(crate) async fn all_to_end(target: &mut dyn Target, how: How<'_>) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let answer = follow(target, how, &mut signals).await;
    close(target, signals).await;
    answer
}

async fn follow(target: &dyn Target, how: How<'_>, signals: &mut Signals) -> Result<(), Failure> {
    let runs = unfinished(target).await?;
    if runs.is_empty() {
        output::tell("nothing to resume");
        return Ok(());
    }
    let verb = if target.is_worked_at() { "following" } else { "took up" };
    output::tell(&format!("{verb} {}", plural(runs.len())));
    tell_approvals(target).await?;
    let mut ends: FuturesUnordered<_> = runs.into_iter().map(|run| ended(target, run)).collect();
    let mut failed = 0;
    let mut trouble_told = target.work();
    let resume = how.resume(target, "all");
    loop {
        tokio::select! {
            end = ends.next() => match end {
                Some(run) => failed += usize::from(!tell_end(target, run?, how)?),
                None => break,
            },
            exit = signals.next() => return Err(stopped(target, exit, &resume)),
            why = troubled(trouble_told.as_mut()) => return Err(trouble(&why, &resume)),
        }
    }
    if failed > 0 { Err(Failure::refused(format!("{} did not succeed", plural(failed)))) } else { Ok(()) }
}

fn stopped(target: &dyn Target, exit: Exit, resume: &str) -> Failure {
    if !target.is_worked_at() {
        return interrupted(exit, resume);
    }
    output::tell("left: the runs go on in the server");
    Failure::silent(exit)
}

/// The unfinished runs that are not paused; reports the paused ones.
async fn unfinished(target: &dyn Target) -> Result<Vec<RunId>, Failure> {
    let mut runs = Vec::new();
    for RunAt { run_id: run, status } in target.unfinished().await? {
        if status == RunStatus::Paused {
            output::tell(&format!("{run} is paused and left alone"));
            output::hint(&target.command(&format!("runs resume {run}")));
        } else {
            runs.push(run);
        }
    }
    Ok(runs)
}

async fn tell_approvals(target: &dyn Target) -> Result<(), Failure> {
    let waiting = target.approvals(None, false).await?.len();
    if waiting > 0 {
        output::tell(&format!("{waiting} approvals are waited for"));
        let list = target.command("approvals list");
        let first = if target.is_worked_at() { "" } else { "stop with Ctrl-C, then " };
        output::hint(&format!("{first}{list}"));
    }
    Ok(())
}

async fn ended(target: &dyn Target, run: RunId) -> Result<RunView, Failure> {
    let view = target.run(run, None).await?;
    if view.status.is_terminal() {
        return Ok(view);
    }
    let mut news = target.follow(run, view.last_seq).await?;
    loop {
        let events = news.next().await?;
        if events.is_empty() || events.iter().any(switchyard_api::Event::is_end) {
            return target.run(run, None).await;
        }
    }
}

/// Shows the end of a run, and returns whether it succeeded.
fn tell_end(target: &dyn Target, run: RunView, how: How<'_>) -> Result<bool, Failure> {
    let verdict = ending::verdict(&run, target);
    if how.json {
        ending::document_line(run)?;
    } else {
        output::line(&format!("{} {}", run.run_id, run.status))?;
    }
    match verdict {
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
