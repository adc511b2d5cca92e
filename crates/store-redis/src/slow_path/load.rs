//! Reads runs and concurrency keys, and loads them into the core.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use redis::{FromRedisValue, Value};
use switchyard_core::in_flight::{ConcurrencyState, InFlight, Limits};
use switchyard_core::ir::Ir;
use switchyard_core::{Hash, OperationId, RunId, Timestamp};
use switchyard_store::StoreError;

use super::ReadSet;
use super::lock::LARGE;
use crate::record::{Record, Stored, kept};
use crate::scripts;
use crate::store::RedisStore;

#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) now: Timestamp,
    /// Runs that are in flight.
    pub(super) runs: HashMap<RunId, Stored>,
    /// Runs that have ended or are to be replaced. The commit requires that they are unchanged.
    pub(super) passed: HashMap<RunId, Passed>,
    pub(super) concurrency_keys: BTreeMap<Arc<str>, ConcurrencyKey>,
}

#[derive(Debug, Default)]
pub(super) struct ConcurrencyKey {
    pub(super) version: String,
    pub(super) arrivals: u64,
    pub(super) waiting: usize,
    pub(super) state: ConcurrencyState,
}

/// A run that has ended or is to be replaced.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) seq: String,
    pub(super) generation: String,
    /// The nodes that have a hash of children.
    pub(super) with_children: Vec<String>,
}

/// A run in the answer of the script.
pub(crate) struct Found {
    pub(crate) id: RunId,
    pub(crate) record: Record,
    pub(super) leases: BTreeMap<String, Timestamp>,
    /// The script did not read the nodes, because there are too many.
    pub(super) is_large: bool,
}

/// The answer of `load.lua`.
struct Reply {
    now: Timestamp,
    found: Vec<Found>,
    concurrency_keys: Vec<ConcurrencyReply>,
    /// The command hash of the operation that was looked for, if it was applied before.
    command: Option<Hash>,
}

type ConcurrencyReply = (String, String, String, String, u32, usize, Vec<(RunText, f64)>);
type RunText = String;

impl Found {
    /// Whether the run must be locked and read in pieces. The rest of a run that has ended is not needed.
    pub(super) fn is_to_be_locked(&self) -> bool {
        self.is_large && !self.record.has_ended()
    }
}

impl RedisStore {
    /// Reads a read set. `None` if something changed meanwhile, or if runs had to be locked first.
    pub(super) async fn load(
        &self,
        read_set: &mut ReadSet,
        line_read: usize,
    ) -> Result<Option<Loaded>, StoreError> {
        let concurrency_keys: Vec<String> =
            read_set.concurrency_keys.iter().map(ToString::to_string).collect();
        let ids: Vec<RunId> = read_set.runs.iter().copied().collect();
        let Reply { now, found, concurrency_keys, command } =
            self.read_runs(&ids, &concurrency_keys, read_set.operation.as_ref(), line_read).await?;
        let mut loaded = Loaded { now, ..Loaded::default() };
        let large =
            found.iter().filter(|found| found.is_to_be_locked() && !read_set.locked.contains_key(&found.id));
        let large: Vec<RunId> = large.map(|found| found.id).collect();
        if !large.is_empty() {
            for run in large {
                read_set.locked.insert(run, self.lock_run(run).await?);
            }
            return Ok(None);
        }
        for mut found in found {
            if found.is_to_be_locked() {
                self.read_large(&mut found).await?;
            }
            if !self.take(found, read_set, &mut loaded).await? {
                return Ok(None);
            }
        }
        for concurrency_key in concurrency_keys {
            let (key, concurrency_key) = read_concurrency_key(concurrency_key, &loaded.passed)?;
            loaded.concurrency_keys.insert(key, concurrency_key);
        }
        if let (Some((run, id)), Some(command)) = (&read_set.operation, command)
            && let Some(stored) = loaded.runs.get_mut(run)
        {
            Arc::make_mut(&mut stored.stored_run.run.operations).insert(id.clone(), command);
        }
        Ok(Some(loaded))
    }

    async fn read_runs(
        &self,
        ids: &[RunId],
        concurrency_keys: &[String],
        operation: Option<&(RunId, OperationId)>,
        line_read: usize,
    ) -> Result<Reply, StoreError> {
        let keys: Vec<String> = ids.iter().map(|run| self.keys.run(*run)).collect();
        let mut args = vec![self.keys.begin().to_owned(), self.time(), line_read.to_string()];
        args.extend([LARGE.to_string(), ids.len().to_string()]);
        args.extend(ids.iter().map(ToString::to_string));
        args.push(concurrency_keys.len().to_string());
        args.extend_from_slice(concurrency_keys);
        args.push(operation.iter().len().to_string());
        args.extend(operation.iter().flat_map(|(run, id)| [run.to_string(), id.to_string()]));
        let (now, runs, concurrency_keys, commands): (i64, Vec<Value>, Vec<ConcurrencyReply>, Vec<String>) =
            self.client.run(&scripts::LOAD, &keys, &args).await?;
        let found = runs.into_iter().map(read_found).collect::<Result<Vec<_>, _>>()?;
        let command = commands.into_iter().find(|command| !command.is_empty());
        Ok(Reply {
            now: Timestamp::from_millis(now),
            found: found.into_iter().flatten().collect(),
            concurrency_keys,
            command: command.map(|command| command.parse().map_err(unreadable)).transpose()?,
        })
    }

    async fn take(&self, found: Found, read_set: &ReadSet, loaded: &mut Loaded) -> Result<bool, StoreError> {
        let Found { id, mut record, leases, .. } = found;
        let seq = record.run.get("seq").cloned().unwrap_or_default();
        let behind = read_set.taken_up.get(&id).is_some_and(|taken_up| seq.parse().unwrap_or(0) < *taken_up);
        if record.has_ended() || behind {
            let generation = record.run.get("gen").cloned().unwrap_or_default();
            let with_children = kept(&record).filter(|(_, kept)| kept.children().is_some());
            let with_children = with_children.map(|(node, _)| node.to_owned()).collect();
            loaded.passed.insert(id, Passed { seq, generation, with_children });
            return Ok(true);
        }
        if !self.read_children(id, &mut record, read_set).await? {
            return Ok(false);
        }
        let ir = self.graph_of(id, &record).await?;
        loaded.runs.insert(id, record.read(id, &leases, &ir)?);
        Ok(true)
    }

    async fn graph_of(&self, id: RunId, record: &Record) -> Result<Arc<Ir>, StoreError> {
        let definition = record.run.get("definition").map(|hex| format!("sha256:{hex}").parse::<Hash>());
        match definition {
            Some(Ok(definition)) => Ok(self.graphs.get(definition).await?.ir.clone()),
            _ => Err(StoreError::Corrupt(format!("`definition` of {id} in Redis makes no sense"))),
        }
    }

    /// Reads one run alone, in pieces if it is large.
    pub(crate) async fn read_run(&self, id: RunId) -> Result<Option<Found>, StoreError> {
        let found = self.read_alone(id).await?;
        if !found.as_ref().is_some_and(Found::is_to_be_locked) {
            return Ok(found);
        }
        let owner = self.lock_run(id).await?;
        let mut found = self.read_alone(id).await?;
        if let Some(found) = found.as_mut().filter(|found| found.is_to_be_locked()) {
            self.read_large(found).await?;
        }
        self.unlock_run(id, &owner).await;
        Ok(found)
    }

    async fn read_alone(&self, id: RunId) -> Result<Option<Found>, StoreError> {
        Ok(self.read_runs(&[id], &[], None, 0).await?.found.into_iter().next())
    }

    /// Decodes a run, without the children of its nodes.
    pub(crate) async fn stored(&self, found: Found) -> Result<Stored, StoreError> {
        let ir = self.graph_of(found.id, &found.record).await?;
        found.record.read(found.id, &found.leases, &ir)
    }

    /// Decodes a run, with all children of its nodes. `None` if it changed while they were read.
    pub(crate) async fn stored_whole(&self, mut found: Found) -> Result<Option<Stored>, StoreError> {
        let mut read_set = ReadSet::run(found.id);
        read_set.look_for_all(found.id, &found.record);
        if !self.read_children(found.id, &mut found.record, &read_set).await? {
            return Ok(None);
        }
        if !found.record.children.is_empty() {
            let key = self.keys.run(found.id);
            let seq: Option<String> = self.client.query(redis::cmd("HGET").arg(key).arg("seq")).await?;
            if seq.as_ref() != found.record.run.get("seq") {
                return Ok(None);
            }
        }
        self.stored(found).await.map(Some)
    }
}

fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("Redis answered something else than the script says: {error}"))
}

fn take<T: FromRedisValue>(value: Value) -> Result<T, StoreError> {
    redis::from_redis_value(value).map_err(unreadable)
}

fn read_found(value: Value) -> Result<Option<Found>, StoreError> {
    let mut parts = take::<Vec<Value>>(value)?.into_iter();
    let id: String = take(parts.next().unwrap_or(Value::Nil))?;
    let id = id.parse().map_err(unreadable)?;
    let Some(run) = parts.next() else { return Ok(None) };
    let is_large = parts.len() == 0;
    let mut next = || parts.next().unwrap_or_else(|| Value::Array(Vec::new()));
    let record = Record { run: take(run)?, dag: take(next())?, context: take(next())?, ..Record::default() };
    let leases: BTreeMap<String, i64> = take(next())?;
    let leases = leases.into_iter().map(|(node, until)| (node, Timestamp::from_millis(until))).collect();
    Ok(Some(Found { id, record, leases, is_large }))
}

/// Decodes a concurrency key. Leaves out runs that are about to be replaced: they get new places.
fn read_concurrency_key(
    reply: ConcurrencyReply,
    replaced: &HashMap<RunId, Passed>,
) -> Result<(Arc<str>, ConcurrencyKey), StoreError> {
    let (key, limit, version, arrivals, mut under_way, mut waiting, mut places) = reply;
    places.sort_by(|a, b| a.1.total_cmp(&b.1));
    places.dedup_by(|a, b| a.0 == b.0);
    let mut line = Vec::new();
    for (run, arrival) in places {
        let run: RunId = run.parse().map_err(unreadable)?;
        match (arrival > 0.0, replaced.contains_key(&run)) {
            (true, false) => line.push(run),
            (true, true) => waiting = waiting.saturating_sub(1),
            (false, false) => {}
            (false, true) => under_way = under_way.saturating_sub(1),
        }
    }
    let state = ConcurrencyState { limit: limit.parse().unwrap_or(0), under_way, line };
    Ok((key.into(), ConcurrencyKey { version, arrivals: arrivals.parse().unwrap_or(0), waiting, state }))
}

impl Loaded {
    /// Builds in-flight state from the read set. New generations are greater than all earlier ones.
    pub(super) fn load(&self, read_set: &ReadSet, limits: Limits, graphs: &[Arc<Ir>]) -> InFlight {
        let mut in_flight = InFlight::part(limits, self.incarnation());
        for ir in graphs {
            in_flight.learn(ir.clone());
        }
        for stored in self.runs.values() {
            in_flight.load(stored.stored_run.clone());
        }
        for run in read_set.runs.iter().filter(|run| !self.runs.contains_key(run)) {
            in_flight.deny(*run);
        }
        for (key, concurrency_key) in
            self.concurrency_keys.iter().filter(|(_, concurrency_key)| concurrency_key.state.limit > 0)
        {
            in_flight.load_concurrency_key(key.clone(), concurrency_key.state.clone());
        }
        in_flight
    }

    /// A new number for the incarnations and generations that begin with this decision.
    pub(super) fn incarnation(&self) -> u64 {
        static WITHIN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let newest =
            self.runs.values().map(|stored| stored.stored_run.generation.max(stored.incarnation)).max();
        let by_time = u64::try_from(self.now.as_millis()).unwrap_or(0) << 11;
        let within = WITHIN.fetch_add(1, std::sync::atomic::Ordering::Relaxed) & 0x7ff;
        (by_time | within).max(newest.unwrap_or(0) + 1)
    }

    /// Whether the decision used up the part of a concurrency key's line that was read, while more runs wait.
    pub(super) fn read_too_little(&self, in_flight: &InFlight) -> bool {
        self.concurrency_keys.iter().any(|(key, concurrency_key)| {
            concurrency_key.waiting > concurrency_key.state.line.len() && in_flight.waiting_for(key) == 0
        })
    }
}
