//! `<node>:wait` of `context:{id}`, the wait of a node; and `children:{id}:{node}`, the children that the node has
//! started or will start.
//!
//! Each child has two fields of its own, `spec:<index>` and `end:<index>`, so that the end of one costs the same
//! however many there are. A command reads only those that it needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::run::{
    Child, ChildEnd, ChildSpec, Children, ChildrenPlan, Gathered, NodeRun, PartialList, WaitFor, Waiting,
};
use switchyard_core::{Hash, Timestamp};
use switchyard_store::StoreError;

use super::{Fields, Reader, Record, json};

pub(super) const FIELD: &str = ":wait";

/// The content of the field `<node>:wait`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kept {
    Retry {
        until: Timestamp,
    },
    For(WaitFor),
    /// The node waits for its children.
    Awaits(Awaits),
    /// All children of the node have ended.
    Ended {
        count: u32,
    },
    /// The form of earlier releases, which kept all children in this field. Read only; written in the form above.
    Children(AllInOne),
    Gathered(Vec<Child>),
}

/// The progress of the children of a node.
#[derive(Serialize, Deserialize)]
pub(crate) struct Awaits {
    workflow: Arc<str>,
    definition: Hash,
    concurrency: u32,
    stop_on_failure: bool,
    timeout_at: Option<Timestamp>,
    count: u32,
    pub(crate) started: u32,
    ended: u32,
    stopped: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct AllInOne {
    plan: Box<ChildrenPlan>,
    results: Vec<Child>,
    started: u32,
    ended: u32,
    stopped: bool,
}

impl Awaits {
    /// How many more children may be started once this many more have ended.
    pub(crate) fn room_after(&self, ends: u32) -> u32 {
        let under_way = (self.started - self.ended).saturating_sub(ends);
        match self.stopped {
            true => 0,
            false => (self.count - self.started).min(self.concurrency.max(1).saturating_sub(under_way)),
        }
    }
}

impl Kept {
    /// The number of children, if they are stored in a hash of their own.
    pub(crate) fn children(&self) -> Option<u32> {
        match self {
            Self::Awaits(awaits) => Some(awaits.count),
            Self::Ended { count } => Some(*count),
            _ => None,
        }
    }
}

/// The children of a node, as they were read or are to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChildrenRecord {
    pub(crate) fields: Fields,
    /// The children that were looked up; `None` for all of them.
    pub(crate) looked_up: Option<LookedUp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LookedUp {
    pub(crate) specs: BTreeSet<u32>,
    pub(crate) ends: BTreeSet<u32>,
}

pub(crate) fn spec_field(index: u32) -> String {
    format!("spec:{index}")
}

pub(crate) fn end_field(index: u32) -> String {
    format!("end:{index}")
}

/// The waiting nodes of a record, with their waits.
pub(crate) fn kept(record: &Record) -> impl Iterator<Item = (&str, Kept)> {
    record.context.iter().filter_map(|(field, text)| {
        let node = field.strip_suffix(FIELD)?;
        Some((node, serde_json::from_str(text).ok()?))
    })
}

pub(super) fn write(
    node: &NodeRun,
    id: &str,
    fields: &mut Fields,
    children: &mut BTreeMap<String, ChildrenRecord>,
) -> Result<(), StoreError> {
    let Some(wait) = node.wait.as_deref() else { return Ok(()) };
    let kept = match wait {
        Waiting::Retry { until } => Kept::Retry { until: *until },
        Waiting::For(on) => Kept::For(on.clone()),
        Waiting::Children(waiting) => {
            children.insert(id.to_owned(), write_children(Some(&waiting.specs), &waiting.ends)?);
            Kept::Awaits(Awaits {
                workflow: waiting.workflow.clone(),
                definition: waiting.definition,
                concurrency: waiting.concurrency,
                stop_on_failure: waiting.stop_on_failure,
                timeout_at: waiting.timeout_at,
                count: waiting.count,
                started: waiting.started,
                ended: waiting.ended,
                stopped: waiting.stopped,
            })
        }
        Waiting::Gathered(gathered) => {
            children.insert(id.to_owned(), write_children(None, &gathered.ends)?);
            Kept::Ended { count: gathered.count }
        }
    };
    fields.insert(format!("{id}{FIELD}"), json(&kept)?);
    Ok(())
}

fn write_children(
    specs: Option<&PartialList<ChildSpec>>,
    ends: &PartialList<ChildEnd>,
) -> Result<ChildrenRecord, StoreError> {
    let mut fields = Fields::new();
    for (index, spec) in specs.into_iter().flat_map(PartialList::iter) {
        fields.insert(spec_field(index), json(spec)?);
    }
    for (index, end) in ends.iter() {
        fields.insert(end_field(index), json(end)?);
    }
    Ok(ChildrenRecord { fields, looked_up: None })
}

pub(super) fn read(reader: &Reader, record: &Record, id: &str) -> Result<Option<Box<Waiting>>, StoreError> {
    let field = format!("{id}{FIELD}");
    let Some(kept) = reader.json(&record.context, &field)? else { return Ok(None) };
    let none = ChildrenRecord { looked_up: Some(LookedUp::default()), ..ChildrenRecord::default() };
    let children = record.children.get(id).unwrap_or(&none);
    let looked_up = children.looked_up.as_ref();
    let ends = || partial_list(reader, children, looked_up.map(|looked_up| &looked_up.ends), "end:");
    Ok(Some(Box::new(match kept {
        Kept::Retry { until } => Waiting::Retry { until },
        Kept::For(on) => Waiting::For(on),
        Kept::Ended { count } => Waiting::Gathered(Gathered { count, ends: ends()? }),
        Kept::Awaits(awaits) => Waiting::Children(Children {
            specs: partial_list(reader, children, looked_up.map(|looked_up| &looked_up.specs), "spec:")?,
            ends: ends()?,
            workflow: awaits.workflow,
            definition: awaits.definition,
            concurrency: awaits.concurrency,
            stop_on_failure: awaits.stop_on_failure,
            timeout_at: awaits.timeout_at,
            count: awaits.count,
            started: awaits.started,
            ended: awaits.ended,
            stopped: awaits.stopped,
        }),
        Kept::Children(all) => Waiting::Children(all.read()),
        Kept::Gathered(children) => {
            Waiting::Gathered(Gathered { count: children.len() as u32, ends: ends_of(children) })
        }
    })))
}

fn partial_list<T: serde::de::DeserializeOwned>(
    reader: &Reader,
    children: &ChildrenRecord,
    looked_up: Option<&BTreeSet<u32>>,
    begin: &str,
) -> Result<PartialList<T>, StoreError> {
    let mut values = Vec::new();
    for (field, text) in &children.fields {
        let Some(index) = field.strip_prefix(begin).and_then(|index| index.parse().ok()) else { continue };
        values.push((index, serde_json::from_str(text).map_err(|_| reader.damaged(field))?));
    }
    Ok(match looked_up {
        Some(looked_up) => PartialList::part(looked_up.clone(), values),
        None => PartialList::whole(values),
    })
}

fn ends_of(children: Vec<Child>) -> PartialList<ChildEnd> {
    PartialList::whole((0..).zip(children).filter_map(|(index, child)| Some((index, child.end?))))
}

impl AllInOne {
    fn read(self) -> Children {
        let Self { plan, results, started, ended, stopped } = self;
        Children {
            workflow: plan.workflow,
            definition: plan.definition,
            concurrency: plan.concurrency,
            stop_on_failure: plan.stop_on_failure,
            timeout_at: plan.timeout_at,
            count: plan.children.len() as u32,
            specs: PartialList::whole((0..).zip(plan.children)),
            ends: ends_of(results),
            started,
            ended,
            stopped,
        }
    }
}
