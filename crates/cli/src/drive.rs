//! Follows a run to its end: progress, Ctrl-C, approvals. In a folder, this process also executes the run; otherwise
//! the server does, and continues when this process exits. Shared by `run`, `retry`, `fork`, `watch`.

mod all;
pub(crate) mod ending;
mod prompter;
pub(crate) mod signals;
mod typed;

use std::time::Duration;

use switchyard_api::RunView;
use switchyard_core::RunId;
use switchyard_core::run::RunStatus;
use switchyard_runtime::Recovered;
use tokio::sync::watch;

use crate::errors::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use crate::reasons::UnservedWatch;
use crate::settings::Settings;
use crate::target::Target;
use prompter::{Prompter, Wake};

pub(crate) use all::all_to_end;
pub(crate) use signals::Signals;

/// How long running tasks may continue after Ctrl-C, or after the requested run has ended.
const GRACE: Duration = Duration::from_secs(2);

/// Options for following a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    pub(crate) settings: &'a Settings,
    /// Print one JSON document instead of the output.
    pub(crate) json: bool,
}

impl How<'_> {
    /// The command that resumes `what`: a run, or `all`.
    fn resume(&self, target: &dyn Target, what: impl std::fmt::Display) -> String {
        // A run that needed `--allow-commands` needs it again.
        let allow = self.settings.allow_commands && !target.is_worked_at();
        target.command(&format!("run --resume {what}{}", if allow { " --allow-commands" } else { "" }))
    }
}

/// How following a run ended.
enum End {
    Ended(Box<RunView>),
    Stopped(Exit),
    /// The store cannot write.
    Trouble(String),
}

/// The point from which a run is followed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Since {
    /// From its current state.
    Now,
    /// From right after one of its events. The run may have advanced since.
    Event(u64),
}

/// Follows `run` until it has ended, and shows its end. In a folder, this process executes it.
pub(crate) async fn to_end(
    target: &mut dyn Target,
    run: RunId,
    since: Since,
    how: How<'_>,
) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let answer = match follow(target, run, since, how, &mut signals).await {
        Ok(End::Ended(view)) => ending::show(*view, how.json, target),
        Ok(End::Stopped(exit)) if target.is_worked_at() => Err(left(target, run, exit)),
        Ok(End::Stopped(exit)) => Err(interrupted(exit, &how.resume(target, run))),
        Ok(End::Trouble(why)) => Err(trouble(&why, &how.resume(target, run))),
        Err(failure) if failure.is_store() && !target.is_worked_at() => {
            Err(failure.hint(nothing_is_lost(&how.resume(target, run))))
        }
        Err(failure) => Err(failure),
    };
    close(target, signals).await;
    answer
}

async fn follow(
    target: &dyn Target,
    run: RunId,
    since: Since,
    how: How<'_>,
    signals: &mut Signals,
) -> Result<End, Failure> {
    let view = match since {
        Since::Now => target.run(run, None).await?,
        Since::Event(seq) => target.run(run, Some(seq)).await?,
    };
    if view.status.is_terminal() {
        return Ok(End::Ended(Box::new(view)));
    }
    let mut progress = Progress::begin(how.settings, &view);
    progress.tell(&format!("{run} of {}", view.workflow));
    // A run with a concurrency key is accepted as queued, and admitted at once if the limit allows.
    if view.status == RunStatus::Queued && target.run(run, None).await?.status == RunStatus::Queued {
        match view.start_at {
            Some(at) => progress.tell(&format!("starts at {at}")),
            None => progress.tell("queued behind its concurrency key"),
        }
    }
    let mut prompter = Prompter::new(how, &view);
    prompter.tell_standing(&view, target, &progress);
    prompter.look(target, &progress).await?;
    let mut news = target.follow(run, view.last_seq).await?;
    let mut trouble = target.work();
    let mut unserved = UnservedWatch::new(run);
    loop {
        tokio::select! {
            () = unserved.tick() => unserved.look(target, &progress).await,
            events = news.next() => {
                let events = events?;
                unserved.note();
                for event in &events {
                    progress.note(event);
                    prompter.note(event, target, &progress);
                }
                if events.is_empty() || events.iter().any(switchyard_api::Event::is_end) {
                    break;
                }
            }
            exit = signals.next() => return Ok(End::Stopped(exit)),
            why = troubled(trouble.as_mut()) => return Ok(End::Trouble(why)),
            wake = prompter.next() => if let Wake::Line(line) = wake {
                prompter.answer(line, target, &progress).await?;
            },
        }
        prompter.look(target, &progress).await?;
    }
    drop(progress);
    Ok(End::Ended(Box::new(target.run(run, None).await?)))
}

async fn troubled(trouble: Option<&mut watch::Receiver<Option<String>>>) -> String {
    match trouble {
        Some(trouble) => said(trouble).await,
        None => std::future::pending().await,
    }
}

/// Waits until the store fails, and returns the reason.
pub(crate) async fn said(trouble: &mut watch::Receiver<Option<String>>) -> String {
    let found = trouble.wait_for(Option::is_some).await.map(|why| (*why).clone());
    match found {
        Ok(Some(why)) => why,
        // The worker is gone, which only happens when this process stops it.
        _ => std::future::pending().await,
    }
}

fn interrupted(exit: Exit, resume: &str) -> Failure {
    output::tell("interrupted: nothing is lost, and it can be resumed");
    output::hint(resume);
    Failure::silent(exit)
}

/// Reports that this process stops watching while the server continues the run.
fn left(target: &dyn Target, run: RunId, exit: Exit) -> Failure {
    output::tell("left: the run goes on in the server");
    output::hint(&target.command(&format!("runs watch {run}")));
    output::hint(&target.command(&format!("runs cancel {run}")));
    Failure::silent(exit)
}

fn trouble(why: &str, resume: &str) -> Failure {
    Failure::store(why).hint(nothing_is_lost(resume))
}

fn nothing_is_lost(resume: &str) -> String {
    format!("nothing accepted is lost; when the folder can be written again: {resume}")
}

/// Shuts down in order, or exits at once on a second signal.
async fn close(target: &mut dyn Target, mut signals: Signals) {
    tokio::select! {
        () = target.leave(GRACE) => {}
        exit = signals.next() => std::process::exit(exit as i32),
    }
}

/// Warns about unfinished runs that could not be recovered.
pub(crate) fn tell_damaged(recovered: &Recovered) {
    for (run, error) in &recovered.damaged {
        output::tell(&format!("warning: {run} could not be taken up and is left as it is: {error}"));
    }
}

/// Reports that `others` further unfinished runs were resumed as well.
pub(crate) fn tell_others(others: usize) {
    match others {
        0 => {}
        1 => output::tell("took up 1 unfinished run from before, which goes on as well"),
        many => output::tell(&format!("took up {many} unfinished runs from before, which go on as well")),
    }
}

/// Prints an accepted run and leaves its execution to a later process, or to the server.
pub(crate) async fn detach(target: &mut dyn Target, run: RunId, how: How<'_>) -> Result<(), Failure> {
    if how.json {
        ending::document(target.run(run, None).await?)?;
    } else {
        output::line(&run.to_string())?;
    }
    target.leave(Duration::ZERO).await;
    match target.is_worked_at() {
        true => output::hint(&target.command(&format!("runs watch {run}"))),
        false => output::hint(&how.resume(target, run)),
    }
    Ok(())
}
