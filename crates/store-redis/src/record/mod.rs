//! The stored form of a run: three hashes, and one for each node that has children. Redis packs small hashes.
//!
//! `run:{id}` has the fields that every step reads, `dag:{id}` a line for each node that has changed since acceptance,
//! and `context:{id}` the fields that are large or rarely read. `scripts/includes/runs.lua` and `nodes.lua` read and
//! write the same form.

mod context;
mod node;
mod run;
mod wait;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchyard_core::in_flight::{Lease, StoredRun};
use switchyard_core::ir::{Ir, NodeIx};
use switchyard_core::{RunId, Timestamp};
use switchyard_store::StoreError;

pub(crate) use node::{ENTRY, WORDS, state_of};
pub(crate) use run::timer_name;
pub(crate) use wait::{ChildrenRecord, Kept, LookedUp, end_field, kept, spec_field};

pub(crate) type Fields = BTreeMap<String, String>;

/// The hashes of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) run: Fields,
    pub(crate) dag: Fields,
    pub(crate) context: Fields,
    /// The hashes of children, by node.
    pub(crate) children: BTreeMap<String, ChildrenRecord>,
}

/// A run that was read from Redis.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) stored_run: StoredRun,
    /// A number that is new each time the run is accepted or rebuilt: it distinguishes the events of incarnations.
    pub(crate) incarnation: u64,
    /// The stream entries of its claims.
    pub(crate) entries: BTreeMap<NodeIx, String>,
    pub(crate) record: Record,
}

/// Input of `Record::write`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    pub(crate) stored_run: &'a StoredRun,
    pub(crate) incarnation: u64,
    pub(crate) entries: &'a BTreeMap<NodeIx, String>,
}

impl Record {
    pub(crate) fn write(written: Written<'_>) -> Result<Self, StoreError> {
        let (context, children) = context::write(&written.stored_run.run)?;
        Ok(Self { run: run::write(&written)?, dag: node::write(&written), context, children })
    }

    /// Whether the run has ended, and its end is not archived yet: readers treat it as gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.run.get("phase").is_some_and(|phase| phase == run::ENDED)
    }

    pub(crate) fn read(
        self,
        id: RunId,
        leases: &BTreeMap<String, Timestamp>,
        ir: &std::sync::Arc<Ir>,
    ) -> Result<Stored, StoreError> {
        let reader = Reader { id };
        let (nodes, entries, limits) = node::read(&reader, &self, ir)?;
        let run = run::read(&reader, &self, ir, nodes)?;
        let leases = leases.iter().filter_map(|(node, until)| {
            let ix = ir.find(node)?;
            Some((ix, Lease { claim: run.node(ix).claim, until: *until, limit: limits.get(&ix).copied() }))
        });
        let stored_run = StoredRun {
            generation: reader.number(&self.run, "gen")?,
            timers: run::read_timers(&reader, &self, ir)?,
            leases: leases.collect(),
            parallelism_state: run::read_parallelism(&reader, &self, ir)?,
            run,
        };
        let incarnation = reader.number(&self.run, "life")?;
        Ok(Stored { stored_run, incarnation, entries, record: self })
    }
}

/// Reads fields of a run, and names the run in the error if one is damaged.
#[derive(Debug)]
pub(super) struct Reader {
    id: RunId,
}

impl Reader {
    fn damaged(&self, field: &str) -> StoreError {
        StoreError::Corrupt(format!("`{field}` of {} in Redis makes no sense", self.id))
    }

    fn number<N: std::str::FromStr>(&self, fields: &Fields, field: &str) -> Result<N, StoreError> {
        fields.get(field).and_then(|text| text.parse().ok()).ok_or_else(|| self.damaged(field))
    }

    fn number_or<N: std::str::FromStr>(&self, fields: &Fields, field: &str, or: N) -> Result<N, StoreError> {
        fields.get(field).map_or(Ok(or), |text| text.parse().map_err(|_| self.damaged(field)))
    }

    fn json<T: DeserializeOwned>(&self, fields: &Fields, field: &str) -> Result<Option<T>, StoreError> {
        let read = |text: &String| serde_json::from_str(text).map_err(|_| self.damaged(field));
        fields.get(field).map(read).transpose()
    }
}

pub(crate) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Corrupt(format!("cannot be written as JSON: {error}")))
}

#[cfg(test)]
mod tests;
