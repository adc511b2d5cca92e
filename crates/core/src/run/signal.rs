//! Signals: messages from outside that a `wait` node asks for by name, before or after they arrive.

use std::sync::Arc;

use super::*;

impl Run {
    pub fn signal(
        &mut self,
        name: &Arc<str>,
        payload: Payload,
        now: Timestamp,
        out: &mut Changes,
    ) -> Result<(), Refusal> {
        let listens = matches!(self.phase, Phase::Queued | Phase::Running | Phase::Compensating);
        self.refuse_unless(listens, "signalled")?;
        if self.signals.len() >= SIGNALS_WAITING_MAX {
            return Err(Refusal::TooManySignals(self.signals.len()));
        }
        self.emit(EventKind::SignalReceived { name: name.clone(), payload, operation: None }, now, out);
        if let Some(ix) = self.ir.indices().find(|&ix| self.awaited_signal(ix) == Some(name)) {
            self.deliver_signal(ix, now, out);
        }
        self.conclude(now, out);
        Ok(())
    }

    fn awaited_signal(&self, ix: NodeIx) -> Option<&Arc<str>> {
        match (self.node(ix).state, self.node(ix).wait.as_deref()) {
            (NodeState::Waiting, Some(Waiting::For(WaitFor::Signal { name, .. }))) => Some(name),
            _ => None,
        }
    }

    fn find_signal(&self, ix: NodeIx) -> Option<usize> {
        let name = self.awaited_signal(ix)?;
        self.signals.iter().position(|(waiting, _)| waiting == name)
    }

    /// Ends a node that waits for a signal, if the signal has arrived.
    pub(super) fn deliver_signal(&mut self, ix: NodeIx, now: Timestamp, out: &mut Changes) {
        if let Some(at) = self.find_signal(ix) {
            let output = self.signals[at].1.clone();
            self.emit(EventKind::NodeSucceeded { node: self.id_of(ix), output, cached: false }, now, out);
        }
    }

    /// Removes the signal that an ending node waited for. For a node that timed out there is none.
    pub(super) fn take_awaited_signal(&mut self, ix: NodeIx) {
        if let Some(at) = self.find_signal(ix) {
            self.signals.remove(at);
        }
    }
}
