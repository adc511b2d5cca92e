//! A run carried to its end in this process: work, progress, Ctrl-C, approvals. Shared by `run`, `retry`, `fork`.

mod all;
mod desk;
pub(crate) mod ending;
mod signals;
mod typed;

use std::time::Duration;

use switchyard_core::RunId;
use switchyard_core::run::{EventKind, Run, RunStatus};
use switchyard_embedded::Embedded;
use tokio::sync::watch;

use crate::errors::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use crate::settings::Settings;
use desk::{Desk, Wake};

pub(crate) use all::all_to_end;
pub(crate) use signals::Signals;

/// How long tasks that are running may go on after Ctrl-C, or after the run that was asked for has ended.
const GRACE: Duration = Duration::from_secs(2);

/// How a run is driven, and shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    pub(crate) settings: &'a Settings,
    /// One document instead of the output.
    pub(crate) json: bool,
}

impl How<'_> {
    /// The command that carries on `what`: a run, or all.
    fn resume(&self, what: impl std::fmt::Display) -> String {
        // A run that needed it needs it again.
        let allow = if self.settings.allow_commands { " --allow-commands" } else { "" };
        self.settings.command(&format!("run --resume {what}{allow}"))
    }
}

/// How it went.
enum End {
    Ended(Box<Run>),
    Stopped(Exit),
    /// The store cannot write.
    Trouble(String),
}

/// Works until `run` has ended, and shows its end.
pub(crate) async fn to_end(yard: Embedded, run: RunId, how: How<'_>) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let answer = match follow(&yard, run, how, &mut signals).await {
        Ok(End::Ended(run)) => ending::show(yard.engine().history(), &run, how.json, how.settings).await,
        Ok(End::Stopped(exit)) => Err(interrupted(exit, &how.resume(run))),
        Ok(End::Trouble(why)) => Err(trouble(&why, &how.resume(run))),
        Err(failure) if failure.is_store() => Err(failure.hint(nothing_is_lost(&how.resume(run)))),
        Err(failure) => Err(failure),
    };
    close(yard, signals).await;
    answer
}

async fn follow(yard: &Embedded, run: RunId, how: How<'_>, signals: &mut Signals) -> Result<End, Failure> {
    let engine = yard.engine();
    let state = engine.state(run).await?;
    if state.is_ended() {
        return Ok(End::Ended(Box::new(state)));
    }
    let mut progress = Progress::begin(how.settings, &state);
    progress.tell(&format!("{run} of {}", state.accepted.workflow));
    if state.status() == RunStatus::Queued {
        progress.tell("queued behind its concurrency key");
    }
    let mut desk = Desk::new(how, &state);
    desk.tell_standing(&state, &progress);
    desk.look(engine, &progress).await?;
    let mut news = engine.follow(run, state.seq);
    let mut trouble = yard.work();
    loop {
        tokio::select! {
            events = news.next() => {
                let events = events?;
                for event in &events {
                    progress.note(event);
                    desk.note(event, &progress);
                }
                if events.iter().any(|event| matches!(event.kind, EventKind::RunEnded { .. })) {
                    break;
                }
            }
            exit = signals.next() => return Ok(End::Stopped(exit)),
            why = said(&mut trouble) => return Ok(End::Trouble(why)),
            wake = desk.next() => if let Wake::Line(line) = wake {
                desk.answer(line, engine, &progress).await?;
            },
        }
        desk.look(engine, &progress).await?;
    }
    drop(progress);
    Ok(End::Ended(Box::new(engine.state(run).await?)))
}

/// What keeps the store from answering, once something does.
pub(crate) async fn said(trouble: &mut watch::Receiver<Option<String>>) -> String {
    let found = trouble.wait_for(Option::is_some).await.map(|why| (*why).clone());
    match found {
        Ok(Some(why)) => why,
        // The worker is gone, which only happens when we stop it.
        _ => std::future::pending().await,
    }
}

fn interrupted(exit: Exit, resume: &str) -> Failure {
    output::tell("interrupted: nothing is lost, and it can be resumed");
    output::hint(resume);
    Failure::silent(exit)
}

fn trouble(why: &str, resume: &str) -> Failure {
    Failure::store(why).hint(nothing_is_lost(resume))
}

fn nothing_is_lost(resume: &str) -> String {
    format!("nothing accepted is lost; when the folder can be written again: {resume}")
}

/// Stops in order, or at once if asked again.
async fn close(yard: Embedded, mut signals: Signals) {
    tokio::select! {
        () = yard.shut_down(GRACE) => {}
        exit = signals.next() => std::process::exit(exit as i32),
    }
}

/// Says that runs from before were taken up, `own` of which were asked for.
pub(crate) fn tell_recovered(yard: &Embedded, own: usize) {
    for (run, error) in &yard.recovered().damaged {
        output::tell(&format!("warning: {run} could not be taken up and is left as it is: {error}"));
    }
    match yard.recovered().runs.saturating_sub(own) {
        0 => {}
        1 => output::tell("took up 1 unfinished run from before, which goes on as well"),
        many => output::tell(&format!("took up {many} unfinished runs from before, which go on as well")),
    }
}

/// Leaves a run to a later process.
pub(crate) async fn detach(yard: Embedded, run: RunId, how: How<'_>) -> Result<(), Failure> {
    if how.json {
        let state = yard.engine().state(run).await?;
        ending::document(yard.engine().history(), &state).await?;
    } else {
        output::line(&run.to_string())?;
    }
    yard.shut_down(Duration::ZERO).await;
    output::hint(&how.resume(run));
    Ok(())
}
