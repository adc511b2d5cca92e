//! Commands on one run that is under way.

use std::sync::Arc;

use super::*;
use crate::Payload;
use crate::run::{Decision, Operation, Patched, Refusal};

#[derive(Clone, Debug)]
pub enum Command {
    Cancel {
        by: Arc<str>,
        reason: Arc<str>,
        compensate: bool,
        /// Ends claimed nodes at once, without the grace period for their workers.
        now: bool,
    },
    Pause {
        by: Arc<str>,
    },
    Resume {
        by: Arc<str>,
    },
    Signal {
        name: Arc<str>,
        payload: Payload,
    },
    Decide {
        approval: ApprovalId,
        decision: Decision,
        by: Arc<str>,
        comment: Arc<str>,
    },
    /// `seen` is the version of the graph that the author looked at. The new graph must be known already.
    Patch {
        seen: u32,
        patched: Box<Patched>,
    },
    Retry {
        by: Arc<str>,
    },
}

/// When a command that was not refused took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    Now,
    /// An earlier call with the same operation id did it; this one changed nothing.
    Earlier,
}

impl InFlight {
    /// Carries out a command, once for each operation id; `None` if there is no such run here.
    pub fn command(
        &mut self,
        id: RunId,
        operation: &Operation,
        command: Command,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> Option<Result<Applied, Refusal>> {
        let retried = matches!(command, Command::Retry { .. });
        let answer = match self.run(id).map(|run| run.has_applied(operation)) {
            Some(Ok(true)) => Some(Ok(Applied::Earlier)),
            Some(Err(refusal)) => Some(Err(refusal)),
            Some(Ok(false)) | None => {
                let answer = self.carry_out_command(id, operation.clone(), command, now, out);
                answer.map(|answer| answer.map(|()| Applied::Now))
            }
        };
        if retried {
            self.drop_if_ended(id, now, out);
        }
        answer
    }

    fn carry_out_command(
        &mut self,
        id: RunId,
        operation: Operation,
        command: Command,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> Option<Result<(), Refusal>> {
        if let Command::Patch { seen, patched } = command {
            return self.patch(id, operation, seen, *patched, now, out);
        }
        let grace_ends = self.stop_by(now);
        self.act_on(id, Changes::of(operation), now, out, |run, changes| match command {
            Command::Cancel { by, reason, compensate, now: at_once } => {
                let stop_by = if at_once { now } else { grace_ends };
                run.cancel(&by, &reason, compensate, stop_by, now, changes)
            }
            Command::Pause { by } => run.pause(by, now, changes),
            Command::Resume { by } => run.resume(by, now, changes),
            Command::Signal { name, payload } => run.signal(&name, payload, now, changes),
            Command::Decide { approval, decision, by, comment } => {
                run.decide(&approval, decision, &by, &comment, now, changes)
            }
            Command::Retry { by } => run.retry(by, now, changes),
            Command::Patch { .. } => Ok(()),
        })
    }

    fn patch(
        &mut self,
        id: RunId,
        operation: Operation,
        seen: u32,
        patched: Patched,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> Option<Result<(), Refusal>> {
        let Some(ir) = self.irs.get(&patched.definition).cloned() else {
            return Some(Err(Refusal::UnknownDefinition(patched.definition)));
        };
        let before = self.run(id)?.ir.clone();
        let changes = Changes::of(operation);
        let answer =
            self.act_on(id, changes, now, out, |run, changes| run.patch(seen, patched, &ir, now, changes));
        self.move_leases(id, &before);
        answer
    }
}
