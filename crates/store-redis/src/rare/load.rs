//! Reading runs and concurrency keys, and lending them to a yard.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use redis::{FromRedisValue, Value};
use switchyard_core::ir::Ir;
use switchyard_core::yard::{GateState, Limits, Yard};
use switchyard_core::{Hash, OperationId, RunId, Timestamp};
use switchyard_store::StoreError;

use super::Touch;
use crate::record::{Fields, Record, Stored};
use crate::scripts;
use crate::store::RedisStore;

#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) now: Timestamp,
    /// Those that are under way.
    pub(super) runs: HashMap<RunId, Stored>,
    /// Those that have ended, or are to be replaced: what must still be there when they are.
    pub(super) passed: HashMap<RunId, (String, String)>,
    pub(super) gates: BTreeMap<Arc<str>, Gate>,
}

#[derive(Debug, Default)]
pub(super) struct Gate {
    pub(super) version: String,
    pub(super) arrivals: u64,
    pub(super) waiting: usize,
    pub(super) state: GateState,
}

/// A run as the script answers it.
pub(crate) struct Found {
    pub(crate) id: RunId,
    pub(crate) record: Record,
    leases: BTreeMap<String, Timestamp>,
}

/// What the script answered.
struct Reply {
    now: Timestamp,
    found: Vec<Found>,
    gates: Vec<GateReply>,
    /// What the operation that was looked for had asked for, if it took effect.
    command: Option<Hash>,
}

type GateReply = (String, String, String, String, u32, usize, Vec<(RunText, f64)>);
type RunText = String;

impl RedisStore {
    pub(super) async fn load(&self, touch: &Touch, line_read: usize) -> Result<Loaded, StoreError> {
        let gates: Vec<String> = touch.gates.iter().map(ToString::to_string).collect();
        let ids: Vec<RunId> = touch.runs.iter().copied().collect();
        let Reply { now, found, gates, command } =
            self.read_runs(&ids, &gates, touch.operation.as_ref(), line_read).await?;
        let mut loaded = Loaded { now, ..Loaded::default() };
        for found in found {
            self.take(found, touch, &mut loaded).await?;
        }
        for gate in gates {
            let (key, gate) = read_gate(gate, &loaded.passed)?;
            loaded.gates.insert(key, gate);
        }
        if let (Some((run, id)), Some(command)) = (&touch.operation, command)
            && let Some(stored) = loaded.runs.get_mut(run)
        {
            Arc::make_mut(&mut stored.berth.run.operations).insert(id.clone(), command);
        }
        Ok(loaded)
    }

    async fn read_runs(
        &self,
        ids: &[RunId],
        gates: &[String],
        operation: Option<&(RunId, OperationId)>,
        line_read: usize,
    ) -> Result<Reply, StoreError> {
        let keys: Vec<String> = ids.iter().map(|run| self.keys.run(*run)).collect();
        let mut args = vec![self.keys.begin().to_owned(), self.time(), line_read.to_string()];
        args.push(ids.len().to_string());
        args.extend(ids.iter().map(ToString::to_string));
        args.push(gates.len().to_string());
        args.extend_from_slice(gates);
        args.push(operation.iter().len().to_string());
        args.extend(operation.iter().flat_map(|(run, id)| [run.to_string(), id.to_string()]));
        let (now, runs, gates, commands): (i64, Vec<Value>, Vec<GateReply>, Vec<String>) =
            self.client.run(&scripts::LOAD, &keys, &args).await?;
        let found = runs.into_iter().map(read_found).collect::<Result<Vec<_>, _>>()?;
        let command = commands.into_iter().find(|command| !command.is_empty());
        Ok(Reply {
            now: Timestamp::from_millis(now),
            found: found.into_iter().flatten().collect(),
            gates,
            command: command.map(|command| command.parse().map_err(unreadable)).transpose()?,
        })
    }

    async fn take(&self, found: Found, touch: &Touch, loaded: &mut Loaded) -> Result<(), StoreError> {
        let Found { id, record, leases } = found;
        let seq = record.run.get("seq").cloned().unwrap_or_default();
        let behind = touch.taken_up.get(&id).is_some_and(|taken_up| seq.parse().unwrap_or(0) < *taken_up);
        if record.has_ended() || behind {
            let generation = record.run.get("gen").cloned().unwrap_or_default();
            loaded.passed.insert(id, (seq, generation));
            return Ok(());
        }
        let ir = self.graph_of(id, &record).await?;
        loaded.runs.insert(id, record.read(id, &leases, &ir)?);
        Ok(())
    }

    async fn graph_of(&self, id: RunId, record: &Record) -> Result<Arc<Ir>, StoreError> {
        let definition = record.run.get("definition").map(|hex| format!("sha256:{hex}").parse::<Hash>());
        match definition {
            Some(Ok(definition)) => Ok(self.graphs.get(definition).await?.ir.clone()),
            _ => Err(StoreError::Corrupt(format!("`definition` of {id} in Redis makes no sense"))),
        }
    }

    /// One run, without anything around it.
    pub(crate) async fn read_run(&self, id: RunId) -> Result<Option<Found>, StoreError> {
        Ok(self.read_runs(&[id], &[], None, 0).await?.found.into_iter().next())
    }

    pub(crate) async fn stored(&self, found: Found) -> Result<Stored, StoreError> {
        let ir = self.graph_of(found.id, &found.record).await?;
        found.record.read(found.id, &found.leases, &ir)
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
    let mut next = || parts.next();
    let id: String = take(next().unwrap_or(Value::Nil))?;
    let Some(run) = next() else { return Ok(None) };
    let mut fields = || take::<Fields>(next().unwrap_or(Value::Nil));
    let record = Record { run: take(run)?, dag: fields()?, context: fields()? };
    let leases: BTreeMap<String, i64> = take(next().unwrap_or(Value::Nil))?;
    let leases = leases.into_iter().map(|(node, until)| (node, Timestamp::from_millis(until))).collect();
    Ok(Some(Found { id: id.parse().map_err(unreadable)?, record, leases }))
}

/// The places of runs that are about to be replaced do not count: they get new ones.
fn read_gate(
    reply: GateReply,
    replaced: &HashMap<RunId, (String, String)>,
) -> Result<(Arc<str>, Gate), StoreError> {
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
    let state = GateState { limit: limit.parse().unwrap_or(0), under_way, line };
    Ok((key.into(), Gate { version, arrivals: arrivals.parse().unwrap_or(0), waiting, state }))
}

impl Loaded {
    /// A yard that holds what was read. Its generations come after all that were given before.
    pub(super) fn lend(&self, touch: &Touch, limits: Limits, graphs: &[Arc<Ir>]) -> Yard {
        let mut yard = Yard::part(limits, self.life());
        for ir in graphs {
            yard.learn(ir.clone());
        }
        for stored in self.runs.values() {
            yard.lend(stored.berth.clone());
        }
        for run in touch.runs.iter().filter(|run| !self.runs.contains_key(run)) {
            yard.deny(*run);
        }
        for (key, gate) in self.gates.iter().filter(|(_, gate)| gate.state.limit > 0) {
            yard.lend_gate(key.clone(), gate.state.clone());
        }
        yard
    }

    /// A number that nothing had before: the lives and generations that begin with this decision.
    pub(super) fn life(&self) -> u64 {
        static WITHIN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let newest = self.runs.values().map(|stored| stored.berth.generation.max(stored.life)).max();
        let by_time = u64::try_from(self.now.as_millis()).unwrap_or(0) << 11;
        let within = WITHIN.fetch_add(1, std::sync::atomic::Ordering::Relaxed) & 0x7ff;
        (by_time | within).max(newest.unwrap_or(0) + 1)
    }

    /// Whether more of a line went in than was read of it.
    pub(super) fn read_too_little(&self, yard: &Yard) -> bool {
        self.gates
            .iter()
            .any(|(key, gate)| gate.waiting > gate.state.line.len() && yard.waiting_for(key) == 0)
    }
}
