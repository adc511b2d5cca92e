//! The slow path, for all changes but those of the fast path: reads the keys that a command touches, lets the core
//! decide, and writes the decision.
//!
//! Only large runs are locked meanwhile. The write names the state that the decision is based on; if that has changed,
//! the script refuses it and the process starts again. So only the core has the rules, and a command on the slow path
//! costs two round trips.

mod batch;
mod cancels;
mod children;
mod commit;
mod load;
mod lock;
mod plan;
mod ready;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use switchyard_core::in_flight::InFlight;
use switchyard_core::ir::Ir;
use switchyard_core::run::{Event, Run, WaitFor, Waiting, Wanted};
use switchyard_core::{Hash, OperationId, RunId, Timestamp};
use switchyard_store::StoreError;

use crate::store::RedisStore;
use load::Loaded;

pub(crate) use batch::SettlementBatcher;
pub(crate) use children::Looks;
pub(crate) use commit::Words;

/// How often a decision is attempted while other processes change the same runs.
const ATTEMPTS_MAX: u32 = 200;
/// How many of the runs that wait for a concurrency key are read at first.
const LINE_READ: usize = 16;

/// The keys that a decision reads, as far as they are known beforehand.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadSet {
    pub(crate) runs: BTreeSet<RunId>,
    pub(crate) concurrency_keys: BTreeSet<Arc<str>>,
    /// The children of nodes that the decision needs.
    pub(crate) children: Looks,
    /// Large runs that are locked for this decision, each with the owner of its lock.
    pub(crate) locked: BTreeMap<RunId, String>,
    /// The graphs of children that may be started, and of patches.
    pub(crate) graphs: BTreeSet<Hash>,
    /// Runs that are rebuilt from their histories up to this seq. They replace a state in Redis that is older or ended.
    pub(crate) taken_up: HashMap<RunId, u64>,
    /// The operation of the command, to find out whether it was applied before.
    pub(crate) operation: Option<(RunId, OperationId)>,
    /// A new run whose acceptance the archive already has.
    pub(crate) archived: Option<RunId>,
    /// The time at which none of the runs existed, if no concurrency key is concerned. The first attempt then reads
    /// nothing; its commit is refused if a run exists by now.
    pub(crate) absent_at: Option<Timestamp>,
    /// Commands to write together with the decision, if it changes anything.
    pub(crate) with: Vec<Words>,
    /// Conditions (hash, field, value) without which nothing is written.
    pub(crate) given: Vec<[String; 3]>,
    /// The stream entries of nodes that are claimed by name.
    pub(crate) entries: BTreeMap<Arc<str>, String>,
    /// The due timers or leases because of which the runs are read, if any.
    pub(crate) due: Option<Due>,
}

/// Due members of a sorted set of timers or leases. The decision removes them, also if their run is gone, but not if
/// the run has put them off meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub(crate) key: String,
    pub(crate) members: Vec<String>,
}

impl ReadSet {
    pub(crate) fn run(run: RunId) -> Self {
        Self { runs: [run].into(), ..Self::default() }
    }

    /// Adds runs and children that a decision turned out to need. A parent is needed because children of it end, so its
    /// entries for those children are added too.
    fn extend(&mut self, loaded: &Loaded, missing: Vec<RunId>, lacking: Vec<(RunId, Arc<str>, Wanted)>) {
        self.runs.extend(&missing);
        let links = loaded.runs.values().filter_map(|stored| stored.stored_run.run.accepted.parent.as_ref());
        let links: Vec<_> = links.filter(|link| missing.contains(&link.run)).cloned().collect();
        for link in links {
            self.look_for(link.run, link.node, Wanted::End(link.index));
        }
        for (run, node, wanted) in lacking {
            self.look_for(run, node, wanted);
        }
    }
}

impl RedisStore {
    /// Reads the read set, lets the core decide, and writes the decision. Starts again after a conflict.
    pub(crate) async fn decide<R>(
        &self,
        mut read_set: ReadSet,
        decide: impl Fn(&mut InFlight, Timestamp, &mut Vec<Event>) -> R + Send + Sync,
    ) -> Result<R, StoreError>
    where
        R: Send,
    {
        let answer = self.decide_locking(&mut read_set, decide).await;
        for (run, owner) in &read_set.locked {
            self.unlock_run(*run, owner).await;
        }
        answer
    }

    async fn decide_locking<R>(
        &self,
        read_set: &mut ReadSet,
        decide: impl Fn(&mut InFlight, Timestamp, &mut Vec<Event>) -> R + Send + Sync,
    ) -> Result<R, StoreError>
    where
        R: Send,
    {
        let mut line_read = LINE_READ;
        let mut turn = None;
        let mut conflicts = 0;
        while conflicts < ATTEMPTS_MAX {
            let loaded = match read_set.absent_at.take() {
                Some(now) => Some(Loaded { now, ..Loaded::default() }),
                None => self.load(read_set, line_read).await?,
            };
            let Some(loaded) = loaded else {
                conflicts += 1;
                continue;
            };
            let graphs = self.graphs_for(read_set, &loaded).await?;
            let mut in_flight = loaded.load(read_set, self.limits, &graphs);
            let mut events = Vec::new();
            let answer = decide(&mut in_flight, loaded.now, &mut events);
            let missing = in_flight.missing();
            let lacking: Vec<_> = in_flight.lacking().cloned().collect();
            if !missing.is_empty() || !lacking.is_empty() {
                read_set.extend(&loaded, missing, lacking);
                continue;
            }
            if loaded.read_too_little(&in_flight) {
                line_read *= 16;
                continue;
            }
            let plan = plan::plan(&self.keys, read_set, &loaded, in_flight.give_back(), &events, &graphs)?;
            if self.commit(plan).await? {
                return Ok(answer);
            }
            self.still(&read_set.given).await?;
            // After a conflict, the decisions of this process take turns.
            conflicts += 1;
            if turn.is_none() {
                turn = Some(self.turns.lock().await);
            }
        }
        drop(turn);
        Err(StoreError::unavailable("what is to be changed is changed by others all the time; try again"))
    }

    /// Fails if one of the conditions does not hold any more.
    async fn still(&self, given: &[[String; 3]]) -> Result<(), StoreError> {
        for [key, field, value] in given {
            let found: Option<String> = self.client.query(redis::cmd("HGET").arg(key).arg(field)).await?;
            if found.as_ref() != Some(value) {
                return Err(StoreError::unavailable("another process has taken this over"));
            }
        }
        Ok(())
    }

    /// Reads the graphs of all children that may be started, and of patches.
    async fn graphs_for(&self, read_set: &ReadSet, loaded: &Loaded) -> Result<Vec<Arc<Ir>>, StoreError> {
        let waiting = loaded.runs.values().flat_map(|stored| planned(&stored.stored_run.run));
        let wanted: BTreeSet<Hash> = waiting.chain(read_set.graphs.iter().copied()).collect();
        let mut found = Vec::with_capacity(wanted.len());
        for definition in wanted {
            found.extend(self.graphs.find(definition).await?.map(|graph| graph.ir.clone()));
        }
        Ok(found)
    }
}

/// Graphs of children that are still to be started.
pub(crate) fn planned(run: &Run) -> impl Iterator<Item = Hash> {
    run.nodes.iter().filter_map(|node| match node.wait.as_deref() {
        Some(Waiting::Children(children)) => Some(children.definition),
        Some(Waiting::For(WaitFor::Children(plan))) => Some(plan.definition),
        _ => None,
    })
}
