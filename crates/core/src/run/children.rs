//! Runs that a node starts and waits for: `map`, `loop`, `workflow`.

use super::*;

impl Run {
    /// Starts as many of a waiting node's runs as it may have at once.
    pub(super) fn start_children(&mut self, ix: NodeIx, now: Timestamp, out: &mut Changes) {
        while let Some((index, run)) = self.next_child(ix) {
            self.emit(EventKind::ChildStarted { node: self.id_of(ix), index, run }, now, out);
        }
        // A plan without children is complete as it is.
        self.wake_if_gathered(ix, now, out);
    }

    fn next_child(&self, ix: NodeIx) -> Option<(u32, RunId)> {
        match self.node(ix).wait.as_deref() {
            Some(Waiting::Children(children)) if children.may_start() => {
                Some((children.started, children.plan.children[children.started as usize].run))
            }
            _ => None,
        }
    }

    fn wake_if_gathered(&mut self, ix: NodeIx, now: Timestamp, out: &mut Changes) {
        let gathered = match self.node(ix).wait.as_deref() {
            Some(Waiting::Children(children)) => children.all_ended(),
            _ => false,
        };
        if !gathered || self.node(ix).state != NodeState::Waiting {
            return;
        }
        let node = self.id_of(ix);
        let kind = match self.phase {
            Phase::Closing => EventKind::NodeCancelled { node },
            _ => EventKind::NodeWoken { node },
        };
        self.emit(kind, now, out);
    }

    /// A run that a node of this one started has ended. A second report changes nothing.
    pub fn child_ended(&mut self, link: &ParentLink, end: ChildEnd, now: Timestamp, out: &mut Changes) {
        let Some(ix) = self.ir.find(&link.node) else { return };
        if !self.awaits_child(ix, link.index) {
            return;
        }
        let ChildEnd { status, output, error } = end;
        let node = self.id_of(ix);
        self.emit(EventKind::ChildEnded { node, index: link.index, status, output, error }, now, out);
        self.start_children(ix, now, out);
        self.conclude(now, out);
    }

    fn awaits_child(&self, ix: NodeIx, index: u32) -> bool {
        match self.node(ix).wait.as_deref() {
            Some(Waiting::Children(children)) => {
                index < children.started
                    && children.results.get(index as usize).is_some_and(|child| child.end.is_none())
            }
            _ => false,
        }
    }

    fn children_mut(&mut self, ix: NodeIx) -> Option<&mut Children> {
        match self.node_mut(ix).wait.as_deref_mut() {
            Some(Waiting::Children(children)) => Some(children),
            _ => None,
        }
    }

    pub(super) fn on_child_started(
        &mut self,
        ix: NodeIx,
        index: u32,
        child: RunId,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let parent = ParentLink { run: self.id, node: self.id_of(ix), index, depth: self.depth() + 1 };
        let Some(children) = self.children_mut(ix) else { return false };
        if children.started != index || children.plan.children.get(index as usize).is_none() {
            return false;
        }
        children.started += 1;
        effects.push(Effect::StartChild {
            child,
            workflow: children.plan.workflow.clone(),
            definition: children.plan.definition,
            input: children.plan.children[index as usize].input.clone(),
            parent,
        });
        true
    }

    pub(super) fn on_child_ended(
        &mut self,
        ix: NodeIx,
        index: u32,
        end: ChildEnd,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(children) = self.children_mut(ix) else { return false };
        let Some(child) = children.results.get_mut(index as usize) else { return false };
        let failed = end.status != EndStatus::Succeeded;
        child.end = Some(end);
        children.ended += 1;
        let stop = failed && children.plan.stop_on_failure;
        if stop {
            self.stop_children(ix, effects);
        }
        true
    }

    /// No further child starts, and those under way are cancelled. Whether any is under way.
    pub(super) fn stop_children(&mut self, ix: NodeIx, effects: &mut Vec<Effect>) -> bool {
        let Some(children) = self.children_mut(ix) else { return false };
        let already = std::mem::replace(&mut children.stopped, true);
        let some_under_way = children.started > children.ended;
        if !already {
            effects.extend(self.children_to_cancel(ix, self.stop_by()));
        }
        some_under_way
    }

    /// Asks for the end of every run that a node has started and that is under way.
    pub(super) fn children_to_cancel(&self, ix: NodeIx, stop_by: Option<Timestamp>) -> Vec<Effect> {
        let compensate = self.closing.as_ref().is_none_or(|closing| closing.compensate);
        let Some(Waiting::Children(children)) = self.node(ix).wait.as_deref() else { return Vec::new() };
        let under_way = children.plan.children[..children.started as usize].iter().zip(&children.results);
        let open = under_way.filter(|(_, child)| child.end.is_none());
        open.map(|(spec, _)| Effect::CancelChild { child: spec.run, compensate, stop_by }).collect()
    }
}
