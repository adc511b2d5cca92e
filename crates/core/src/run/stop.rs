//! Cancels the tasks of a closing run that workers still hold when their time to stop is over.

use super::*;

impl Run {
    /// Cancels held tasks once the workers' time to stop is over. Early and stale calls change nothing.
    pub fn stop_overdue(&mut self, now: Timestamp, out: &mut Changes) {
        let due = self.closing.as_ref().and_then(|closing| closing.stop_by).is_some_and(|at| at <= now);
        if due {
            self.stop_held(now, out);
        }
    }

    /// Brings forward when the workers of a closing run must have stopped.
    pub(super) fn hurry(&mut self, stop_by: Timestamp, now: Timestamp, out: &mut Changes) {
        if let Some(Closing { outcome, error, compensate, .. }) = self.closing.clone() {
            self.close(outcome, error, Some(stop_by), compensate, now, out);
        }
    }

    /// Cancels a run because its parent is being closed or has stopped it. A run that is being closed already can only
    /// end earlier.
    pub fn cancel_with_parent(
        &mut self,
        compensate: bool,
        stop_by: Timestamp,
        now: Timestamp,
        out: &mut Changes,
    ) {
        if self.stop_by().is_some_and(|own| own <= stop_by) {
            self.stop_overdue(now, out);
        } else {
            // `cancel` refuses if there is nothing to change.
            let _ = self.cancel("its parent run", "", compensate, stop_by, now, out);
        }
    }

    /// Cancels every held node of a closing run, and the runs that its waiting nodes started. Later settlements by
    /// their workers are stale.
    pub(super) fn stop_held(&mut self, now: Timestamp, out: &mut Changes) {
        if self.phase != Phase::Closing {
            return;
        }
        for (ix, _) in self.held() {
            self.emit(EventKind::NodeCancelled { node: self.id_of(ix) }, now, out);
        }
        out.effects.push(Effect::ClaimsEnded);
        for ix in self.ir.clone().indices() {
            out.effects.extend(self.children_to_cancel(ix, Some(now)));
        }
        self.conclude(now, out);
    }
}
