//! Changing the graph of a run that is under way.
//!
//! The caller has validated the new graph like a submission. The run checks what only it knows: that the patch changes
//! no started node (I8). A patch applies whole or not at all.

use std::sync::Arc;

use super::*;
use crate::PatchId;
use crate::ir::{Ir, Role};

impl Run {
    /// Puts the run on a new graph. `seen` is the version that the author looked at.
    pub fn patch(
        &mut self,
        seen: u32,
        patched: Patched,
        ir: &Arc<Ir>,
        now: Timestamp,
        out: &mut Changes,
    ) -> Result<(), Refusal> {
        self.check_patch(seen, ir)?;
        let patched = Patched { version: self.version + 1, definition: ir.hash, ..patched };
        self.emit_with_ir(EventKind::RunPatched(Box::new(patched)), Some(ir), now, out);
        self.conclude(now, out);
        Ok(())
    }

    /// Checks a patch without applying it: a dry run.
    pub fn check_patch(&self, seen: u32, ir: &Arc<Ir>) -> Result<(), Refusal> {
        self.refuse_unless(matches!(self.phase, Phase::Queued | Phase::Running), "patched")?;
        if seen != self.version {
            return Err(Refusal::StaleVersion { seen, current: self.version });
        }
        let touched = self.ir.indices().find(|&ix| self.node(ix).has_started() && !self.keeps(ix, ir));
        touched.map_or(Ok(()), |ix| Err(Refusal::NodeStarted(self.id_of(ix))))
    }

    fn keeps(&self, ix: NodeIx, ir: &Ir) -> bool {
        let old = self.ir.node(ix);
        ir.find(&old.id).is_some_and(|new| {
            let new = ir.node(new);
            new.fingerprint == old.fingerprint && new.needs == old.needs
        })
    }

    /// The patch that `undo` names, if it is there and not undone.
    pub fn patch_to_undo(&self, undo: &PatchId) -> Result<&Patched, Refusal> {
        let undone = self.patches.iter().any(|patch| patch.undoes.as_ref() == Some(undo));
        self.patches
            .iter()
            .find(|patch| patch.patch == *undo && !undone && patch.undoes.is_none())
            .ok_or_else(|| Refusal::UnknownPatch(undo.as_str().into()))
    }

    pub(super) fn on_patched(&mut self, patched: &Patched, ir: &Arc<Ir>, effects: &mut Vec<Effect>) -> bool {
        if patched.version != self.version + 1 {
            return false;
        }
        let mut ignored = Vec::new();
        self.drop_tokens_of_removed(ir, &mut ignored);
        self.nodes = ir
            .indices()
            .map(|ix| match self.ir.find(&ir.node(ix).id) {
                Some(old) => std::mem::take(self.node_mut(old)),
                None => NodeRun::default(),
            })
            .collect();
        self.ir = ir.clone();
        self.version = patched.version;
        self.patches.push(patched.clone());
        if self.phase == Phase::Running {
            self.recount_joins(&mut ignored);
            self.take_back_output(&mut ignored);
        }
        // Indices have moved: everything that was queued or armed by index is void.
        effects.push(Effect::Rewired);
        true
    }

    fn drop_tokens_of_removed(&mut self, ir: &Arc<Ir>, effects: &mut Vec<Effect>) {
        for ix in self.ir.indices() {
            if self.node(ix).state == NodeState::Ready && ir.find(&self.ir.node(ix).id).is_none() {
                self.shift(ix, Transition::Reset, effects);
            }
        }
    }

    /// Takes the queued output step back if the graph has grown and other steps have not ended.
    fn take_back_output(&mut self, effects: &mut Vec<Effect>) {
        let Some(output) = self.ir.output else { return };
        let node = self.node(output);
        let waits_unstarted = node.state == NodeState::Ready && !node.has_started();
        let others_open = self
            .ir
            .indices()
            .any(|ix| self.ir.node(ix).role == Role::Step && !self.node(ix).state.is_terminal());
        if waits_unstarted && others_open {
            self.shift(output, Transition::Reset, effects);
        }
    }
}
