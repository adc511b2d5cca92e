//! Runs that a node starts and waits for: `map`, `loop`, `workflow`.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::labels;

/// How many children one command starts at most. A timer that is due at once starts the next batch, so that a command
/// stays short however long the list is.
pub const CHILDREN_AT_ONCE: u32 = 500;

/// The child runs of a node, both started and yet to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Children {
    pub workflow: Arc<str>,
    pub definition: Hash,
    pub concurrency: u32,
    pub stop_on_failure: bool,
    pub timeout_at: Option<Timestamp>,
    /// The total number of children.
    pub count: u32,
    /// How many children were started. They start in order.
    pub started: u32,
    pub ended: u32,
    /// Set when no further child may start.
    pub stopped: bool,
    /// The specification of each child, by index.
    pub specs: PartialList<ChildSpec>,
    /// The results of ended children, by index.
    pub ends: PartialList<ChildEnd>,
}

/// The results of a node's children, once every started child has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    pub count: u32,
    pub ends: PartialList<ChildEnd>,
}

/// A child, as the worker that reads the results sees it. A child without an end was never started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Child {
    pub end: Option<ChildEnd>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildEnd {
    /// The child's id. Ends that earlier versions recorded do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub status: EndStatus,
    pub output: Payload,
    pub error: Option<RunError>,
}

/// A run that a node has started and waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedChild {
    pub run: RunId,
    pub link: ParentLink,
}

/// Values by index: all of them, or the part that a store has loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialList<T> {
    values: BTreeMap<u32, T>,
    /// The indices that were looked up. `None` if all were.
    looked_up: Option<BTreeSet<u32>>,
}

/// Data that a store has to load before the command is decided anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// The result of a child, if it has ended.
    End(u32),
    /// The specifications of the children from this index on.
    SpecsFrom(u32),
    Everything,
}

impl<T> PartialList<T> {
    pub fn whole(values: impl IntoIterator<Item = (u32, T)>) -> Self {
        Self { values: values.into_iter().collect(), looked_up: None }
    }

    /// A list of the values that were found at the indices looked up.
    pub fn part(looked_up: BTreeSet<u32>, values: impl IntoIterator<Item = (u32, T)>) -> Self {
        Self { values: values.into_iter().collect(), looked_up: Some(looked_up) }
    }

    pub fn is_whole(&self) -> bool {
        self.looked_up.is_none()
    }

    /// The loaded values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.values.iter().map(|(index, value)| (*index, value))
    }

    pub fn get(&self, index: u32) -> Option<&T> {
        self.values.get(&index)
    }

    fn knows(&self, index: u32) -> bool {
        self.looked_up.as_ref().is_none_or(|known| known.contains(&index)) || self.values.contains_key(&index)
    }
}

impl Children {
    pub(super) fn new(plan: &ChildrenPlan) -> Self {
        Self {
            workflow: plan.workflow.clone(),
            definition: plan.definition,
            concurrency: plan.concurrency,
            stop_on_failure: plan.stop_on_failure,
            timeout_at: plan.timeout_at,
            count: plan.children.len() as u32,
            started: 0,
            ended: 0,
            stopped: false,
            specs: PartialList::whole((0..).zip(plan.children.iter().cloned())),
            ends: PartialList::whole([]),
        }
    }

    /// How many more children may start now.
    pub fn room(&self) -> u32 {
        let under_way = self.started - self.ended;
        match self.stopped {
            true => 0,
            false => (self.count - self.started).min(self.concurrency.max(1).saturating_sub(under_way)),
        }
    }

    fn all_ended(&self) -> bool {
        self.started == self.ended && (self.stopped || self.started == self.count)
    }

    /// Children that were started and have not ended, by index.
    fn under_way(&self) -> impl Iterator<Item = (u32, RunId)> {
        self.specs
            .iter()
            .take_while(|(index, _)| *index < self.started)
            .filter(|(index, _)| self.ends.get(*index).is_none())
            .map(|(index, spec)| (index, spec.run))
    }
}

impl Gathered {
    pub fn children(&self) -> Vec<Child> {
        (0..self.count).map(|index| Child { end: self.ends.get(index).cloned() }).collect()
    }
}

impl Run {
    fn children(&self, ix: NodeIx) -> Option<&Children> {
        match self.node(ix).wait.as_deref() {
            Some(Waiting::Children(children)) => Some(children),
            _ => None,
        }
    }

    fn children_mut(&mut self, ix: NodeIx) -> Option<&mut Children> {
        match self.node_mut(ix).wait.as_deref_mut() {
            Some(Waiting::Children(children)) => Some(children),
            _ => None,
        }
    }

    /// Starts children of a waiting node up to its concurrency, at most one batch.
    pub(super) fn start_children(&mut self, ix: NodeIx, now: Timestamp, out: &mut Changes) {
        for _ in 0..CHILDREN_AT_ONCE {
            let Some((index, run)) = self.next_child(ix, out) else { break };
            self.emit(EventKind::ChildStarted { node: self.id_of(ix), index, run }, now, out);
        }
        out.effects.extend(self.next_batch(ix));
        // A plan without children is complete as it is.
        self.wake_if_gathered(ix, now, out);
    }

    fn next_child(&self, ix: NodeIx, out: &mut Changes) -> Option<(u32, RunId)> {
        let children = self.children(ix).filter(|children| children.room() > 0)?;
        let index = children.started;
        if !children.specs.knows(index) {
            out.effects.push(Effect::NotLoaded { node: ix, wanted: Wanted::SpecsFrom(index) });
        }
        Some((index, children.specs.get(index)?.run))
    }

    /// The timer that starts the next batch, while more children may start.
    pub(super) fn next_batch(&self, ix: NodeIx) -> Option<Effect> {
        let node = self.node(ix);
        self.children(ix).filter(|children| children.room() > 0)?;
        // A moment in the past, the same one each time.
        let at = node.started_at.unwrap_or(self.accepted_at);
        Some(Effect::Timer { at, node: ix, claim: node.claim })
    }

    fn wake_if_gathered(&mut self, ix: NodeIx, now: Timestamp, out: &mut Changes) {
        let gathered = self.children(ix).is_some_and(Children::all_ended);
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

    /// Records the end of a child of this run. A second report changes nothing.
    pub fn child_ended(&mut self, link: &ParentLink, end: ChildEnd, now: Timestamp, out: &mut Changes) {
        let Some(ix) = self.ir.find(&link.node) else { return };
        if !self.awaits_child(ix, link.index, out) {
            return;
        }
        // If a batch is still to start, that batch takes the room of this child.
        let batch_comes = self.children(ix).is_some_and(|children| children.room() > 0);
        let ChildEnd { run, status, output, error } = end;
        let node = self.id_of(ix);
        self.emit(EventKind::ChildEnded { node, index: link.index, run, status, output, error }, now, out);
        if batch_comes {
            self.wake_if_gathered(ix, now, out);
        } else {
            self.start_children(ix, now, out);
        }
        self.conclude(now, out);
    }

    /// Children that nodes of this run wait for.
    pub fn awaited_children(&self) -> impl Iterator<Item = AwaitedChild> {
        self.ir.indices().flat_map(move |ix| {
            let under_way = self.children(ix).into_iter().flat_map(Children::under_way);
            under_way.map(move |(index, run)| AwaitedChild { run, link: self.link_to_child(ix, index) })
        })
    }

    fn link_to_child(&self, ix: NodeIx, index: u32) -> ParentLink {
        ParentLink { run: self.id, node: self.id_of(ix), index, depth: self.depth() + 1 }
    }

    /// Like [`Run::child_ended`], for a child that may be of an earlier attempt of its node.
    pub fn awaited_child_ended(
        &mut self,
        child: &AwaitedChild,
        end: ChildEnd,
        now: Timestamp,
        out: &mut Changes,
    ) {
        let index = child.link.index;
        let Some(ix) = self.ir.find(&child.link.node) else { return };
        let Some(children) = self.children(ix) else { return };
        if !children.specs.knows(index) {
            out.effects.push(Effect::NotLoaded { node: ix, wanted: Wanted::SpecsFrom(index) });
        }
        if children.specs.get(index).is_some_and(|spec| spec.run == child.run) {
            self.child_ended(&child.link, end, now, out);
        }
    }

    fn awaits_child(&self, ix: NodeIx, index: u32, out: &mut Changes) -> bool {
        let Some(children) = self.children(ix) else { return false };
        if !children.ends.knows(index) {
            out.effects.push(Effect::NotLoaded { node: ix, wanted: Wanted::End(index) });
        }
        index < children.started && children.ends.get(index).is_none()
    }

    pub(super) fn on_child_started(
        &mut self,
        ix: NodeIx,
        index: u32,
        child: RunId,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let parent = self.link_to_child(ix, index);
        let inherited = self.ir.inherit_labels.then(|| self.accepted.clone());
        let Some(children) = self.children_mut(ix) else { return false };
        let Some(spec) = children.specs.get(index) else { return false };
        if children.started != index {
            return false;
        }
        let labels = match inherited {
            Some(parent) => labels::inherit(&spec.labels, &parent.labels),
            None => spec.labels.clone(),
        };
        effects.push(Effect::StartChild {
            child,
            workflow: children.workflow.clone(),
            definition: children.definition,
            input: spec.input.clone(),
            labels,
            parent,
        });
        children.started += 1;
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
        if index >= children.count {
            return false;
        }
        let failed = end.status != EndStatus::Succeeded;
        children.ends.values.insert(index, end);
        children.ended += 1;
        let stop = failed && children.stop_on_failure;
        if stop {
            self.stop_children(ix, effects);
        }
        true
    }

    /// Starts no further child, and cancels the children under way. Returns whether any is under way.
    pub(super) fn stop_children(&mut self, ix: NodeIx, effects: &mut Vec<Effect>) -> bool {
        let Some(children) = self.children_mut(ix) else { return false };
        let already = std::mem::replace(&mut children.stopped, true);
        let some_under_way = children.started > children.ended;
        if !already {
            effects.extend(self.children_to_cancel(ix, self.stop_by()));
        }
        some_under_way
    }

    /// The effects that cancel all children of a node that are under way.
    pub(super) fn children_to_cancel(&self, ix: NodeIx, stop_by: Option<Timestamp>) -> Vec<Effect> {
        let compensate = self.compensates_children();
        let under_way = self.children(ix).filter(|children| children.started > children.ended);
        let Some(children) = under_way else { return Vec::new() };
        if !children.specs.is_whole() || !children.ends.is_whole() {
            return vec![Effect::NotLoaded { node: ix, wanted: Wanted::Everything }];
        }
        children.under_way().map(|(_, child)| Effect::CancelChild { child, compensate, stop_by }).collect()
    }

    /// Whether to compensate a child and by when it has to stop; `None` if this run has not stopped the child. A store
    /// may cancel children later than it stops their parent; if it loses data in between, it has to cancel them again.
    pub(crate) fn cancels_child(&self, link: &ParentLink) -> Option<(bool, Option<Timestamp>)> {
        let stopped = self.ir.find(&link.node).and_then(|ix| self.children(ix)).is_some_and(|c| c.stopped);
        stopped.then(|| (self.compensates_children(), self.stop_by()))
    }

    fn compensates_children(&self) -> bool {
        self.closing.as_ref().is_none_or(|closing| closing.compensate)
    }
}
