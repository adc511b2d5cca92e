//! Reads the children of a run's nodes: those that a command needs, or all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use switchyard_core::RunId;
use switchyard_core::run::{CHILDREN_AT_ONCE, Child, ChildEnd, Wanted};
use switchyard_store::StoreError;

use super::ReadSet;
use crate::record::{ChildrenRecord, Fields, Kept, LookedUp, Record, end_field, kept, spec_field};
use crate::store::RedisStore;

/// How many fields one command reads.
const FIELDS_AT_ONCE: usize = 1_000;

/// The children of a node that a command needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    ends: BTreeSet<u32>,
    specs: BTreeSet<u32>,
    everything: bool,
}

/// The children to read, by run and node.
pub(crate) type Looks = BTreeMap<(RunId, Arc<str>), Look>;

impl ReadSet {
    /// Adds children that a decision turned out to need.
    pub(crate) fn look_for(&mut self, run: RunId, node: Arc<str>, wanted: Wanted) {
        // Each run that ends lets one child start; a timer starts a batch.
        let batch = if self.due.is_some() { CHILDREN_AT_ONCE } else { self.runs.len() as u32 };
        let look = self.children.entry((run, node)).or_default();
        match wanted {
            Wanted::End(index) => drop(look.ends.insert(index)),
            Wanted::SpecsFrom(index) => look.specs.extend(index..index + batch.max(1)),
            Wanted::Everything => look.everything = true,
        }
    }

    /// Adds all children of every node of a run.
    pub(super) fn look_for_all(&mut self, run: RunId, record: &Record) {
        for (node, _) in kept(record) {
            self.children.entry((run, node.into())).or_default().everything = true;
        }
    }
}

impl Look {
    /// The fields to look up: those that the decision asked for, and those that it will most likely need next.
    fn fields(&self, kept: &Kept, batch_is_due: bool) -> LookedUp {
        let mut specs = self.specs.clone();
        if let Kept::Awaits(awaits) = kept {
            let likely = if batch_is_due { CHILDREN_AT_ONCE } else { self.ends.len() as u32 };
            let room = awaits.room_after(self.ends.len() as u32);
            specs.extend(awaits.started..awaits.started + likely.min(room));
        }
        LookedUp { specs, ends: self.ends.clone() }
    }
}

impl RedisStore {
    /// Reads the wanted children into the record of a run. False if they do not match the record: the run has changed
    /// since the record was read.
    pub(super) async fn read_children(
        &self,
        run: RunId,
        record: &mut Record,
        read_set: &ReadSet,
    ) -> Result<bool, StoreError> {
        let mut found = BTreeMap::new();
        for (node, kept) in kept(record) {
            let Some(count) = kept.children() else { continue };
            let look = read_set.children.get(&(run, node.into())).cloned().unwrap_or_default();
            let looked_up = (!look.everything).then(|| look.fields(&kept, read_set.due.is_some()));
            let fields = match &looked_up {
                Some(looked_up) => {
                    let specs = looked_up.specs.iter().filter(|index| **index < count);
                    specs
                        .map(|i| spec_field(*i))
                        .chain(looked_up.ends.iter().map(|i| end_field(*i)))
                        .collect()
                }
                None => (0..count).flat_map(|i| [spec_field(i), end_field(i)]).collect::<Vec<_>>(),
            };
            let fields = self.fields_of(&self.keys.children(run, node), &fields).await?;
            let specs = fields.keys().filter(|field| field.starts_with("spec:")).count();
            let expected = looked_up.as_ref().map_or(count as usize, |looked_up| looked_up.specs.len());
            if specs < expected && matches!(kept, Kept::Awaits(_)) {
                return Ok(false);
            }
            found.insert(node.to_owned(), ChildrenRecord { fields, looked_up });
        }
        record.children = found;
        Ok(true)
    }

    /// The fields among these that exist in a hash.
    async fn fields_of(&self, key: &str, fields: &[String]) -> Result<Fields, StoreError> {
        let mut found = Fields::new();
        for fields in fields.chunks(FIELDS_AT_ONCE) {
            let values: Vec<Option<String>> =
                self.client.query(redis::cmd("HMGET").arg(key).arg(fields)).await?;
            let pairs = fields.iter().cloned().zip(values);
            found.extend(pairs.filter_map(|(field, value)| Some((field, value?))));
        }
        Ok(found)
    }

    /// Reads the results of the children of a node that a worker has just claimed.
    pub(crate) async fn gathered(
        &self,
        run: RunId,
        node: &str,
        count: u32,
    ) -> Result<Vec<Child>, StoreError> {
        let fields: Vec<String> = (0..count).map(end_field).collect();
        let key = self.keys.children(run, node);
        let found = self.fields_of(&key, &fields).await?;
        // The hash is removed when the claim is settled: if it is gone, another process has settled the node.
        let is_there: bool = self.client.query(redis::cmd("EXISTS").arg(&key)).await?;
        if !is_there && count > 0 {
            return Err(StoreError::unavailable("the results of a node's runs are gone; its claim was lost"));
        }
        let read = |text: &String| serde_json::from_str::<ChildEnd>(text).map_err(crate::task::unreadable);
        let child = |field: &String| Ok(Child { end: found.get(field).map(read).transpose()? });
        fields.iter().map(child).collect()
    }
}
