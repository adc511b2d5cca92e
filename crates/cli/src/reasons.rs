//! Describes why a run waits, with the commands that end the waiting.

use std::collections::HashSet;
use std::time::Duration;

use switchyard_api::WaitReason;
use switchyard_core::RunId;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::progress::Progress;
use crate::target::Target;

/// How often a followed run is checked for a worker that serves its next task.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long the check may take: meanwhile events of the run are not shown.
const PATIENCE: Duration = Duration::from_millis(500);

/// The line that shows one reason.
pub(crate) fn waiting(reason: &WaitReason) -> String {
    format!("waiting: {reason}")
}

/// The commands that end the waits of a run.
pub(crate) fn hints(run: RunId, waits: &[WaitReason], target: &dyn Target) -> Vec<String> {
    waits.iter().filter_map(|reason| hint(run, reason, target)).collect()
}

fn hint(run: RunId, reason: &WaitReason, target: &dyn Target) -> Option<String> {
    match reason {
        WaitReason::Approval { approval, .. } => {
            Some(format!("{} (or reject)", target.command(&format!("approvals approve {approval}"))))
        }
        WaitReason::Signal { name, .. } => Some(target.command(&format!("runs signal {run} {name}"))),
        WaitReason::Resume {} => Some(target.command(&format!("runs resume {run}"))),
        WaitReason::Worker { .. } => Some(format!(
            "start a worker that serves it; {} lists those that are alive",
            target.command("workers")
        )),
        _ => None,
    }
}

/// Checks, while a run is followed, whether a worker serves its next task, and reports once if none does.
#[derive(Debug)]
pub(crate) struct UnservedWatch {
    run: RunId,
    told: HashSet<String>,
    /// Whether the run had an event since the last check; if so, it is not stuck.
    moved: bool,
    ticks: Interval,
}

impl UnservedWatch {
    pub(crate) fn new(run: RunId) -> Self {
        let mut ticks = interval_at(Instant::now() + LOOK_EVERY / 4, LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { run, told: HashSet::new(), moved: false, ticks }
    }

    /// Notes that the run had an event.
    pub(crate) fn note(&mut self) {
        self.moved = true;
    }

    /// Returns when the next check is due.
    pub(crate) async fn tick(&mut self) {
        self.ticks.tick().await;
    }

    /// Checks why the run waits. If the server does not answer in time, the next check asks again.
    pub(crate) async fn look(&mut self, target: &dyn Target, progress: &Progress) {
        if std::mem::take(&mut self.moved) {
            return;
        }
        let Ok(Ok(found)) = tokio::time::timeout(PATIENCE, target.waits(self.run)).await else { return };
        for reason in &found.waits {
            let Some(text) = reason.unserved() else { continue };
            if self.told.insert(text) {
                progress.tell(&waiting(reason));
            }
        }
    }
}
