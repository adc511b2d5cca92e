//! Ending what workers still hold of a closing run, once the time to stop by themselves is over.

use super::*;

impl Run {
    /// The time that workers had to stop is over. Early and stale calls change nothing.
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

    /// The run that started this one is being closed, or gave it up. A run that is being closed already can only end
    /// earlier by that.
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
            // Refused if there is nothing that it could change.
            let _ = self.cancel("its parent run", "", compensate, stop_by, now, out);
        }
    }

    /// Cancels every held node of a closing run, and the runs that its waiting nodes started. What their workers say
    /// later is stale.
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
