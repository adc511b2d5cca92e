//! `run:{id}`: the state of a run.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchyard_core::in_flight::{ParallelismState, TimerKey};
use switchyard_core::ir::{Ir, NodeIx};
use switchyard_core::run::{NodeRun, Phase, Run};
use switchyard_core::{Payload, Timestamp};
use switchyard_store::StoreError;

use crate::slow_path::planned;

use super::context::{self, Ended};
use super::{Fields, Reader, Record, Written, json};

/// The phase of a run that has ended and whose end is not archived yet.
pub(super) const ENDED: &str = "ended";
/// The phase of a run that had ended and was loaded again, to be retried.
const PARKED: &str = "parked";

pub(super) fn write(written: &Written<'_>) -> Result<Fields, StoreError> {
    let (stored_run, run) = (written.stored_run, &written.stored_run.run);
    let mut fields = Fields::new();
    let mut put = |field: &str, value: String| fields.insert(field.to_owned(), value);
    put("seq", run.seq.to_string());
    put("gen", stored_run.generation.to_string());
    put("life", written.incarnation.to_string());
    put("phase", phase_name(run.phase).to_owned());
    put("counter", run.counter.to_string());
    put("definition", run.ir.hash.hex());
    put("at", run.accepted_at.as_millis().to_string());
    let optional = [
        ("paused", run.paused.then(|| "1".to_owned())),
        ("delayed", run.delayed.then(|| "1".to_owned())),
        ("priority", run.accepted.priority.map(|priority| priority.to_string())),
        ("approvals", (run.approvals > 0).then(|| run.approvals.to_string())),
        ("version", (run.version > 1).then(|| run.version.to_string())),
        ("attempt", (run.attempt > 1).then(|| run.attempt.to_string())),
        ("depth", (run.depth() > 0).then(|| run.depth().to_string())),
        ("deadline", run.deadline.map(|at| at.as_millis().to_string())),
        ("gate", run.accepted.concurrency.as_ref().map(|concurrency_key| concurrency_key.key.to_string())),
        ("idem", run.accepted.idempotency.as_ref().map(|key| key.key.to_string())),
        ("plans", write_plans(run)),
        ("timers", write_timers(written)?),
        ("play", write_parallelism(written)?),
        ("flags", flags(written)),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            put(field, value);
        }
    }
    Ok(fields)
}

/// The graphs of children that the run has yet to start, so that they are not removed before.
fn write_plans(run: &Run) -> Option<String> {
    let hashes: BTreeSet<String> = planned(run).map(|hash| hash.hex()).collect();
    (!hashes.is_empty()).then(|| hashes.into_iter().collect::<Vec<_>>().join(" "))
}

/// The flags because of which a step script leaves a run to the core; and `m`, which makes it read further fields.
fn flags(written: &Written<'_>) -> Option<String> {
    let run = &written.stored_run.run;
    let flags = [
        ('c', run.parallelism().is_some()),
        ('k', run.accepted.concurrency.is_some()),
        ('m', has_more(run)),
        ('p', run.accepted.parent.is_some()),
        ('s', run.closing.as_ref().is_some_and(|closing| closing.stop_running)),
        ('t', !written.stored_run.timers.is_empty()),
    ];
    let set: String = flags.iter().filter(|(_, set)| *set).map(|(flag, _)| *flag).collect();
    (!set.is_empty()).then_some(set)
}

/// Whether the run has one of the fields that `includes/runs.lua` reads only if the flag `m` is set.
fn has_more(run: &Run) -> bool {
    let counts = run.approvals > 0 || run.attempt > 1 || run.depth() > 0;
    run.paused || counts || run.accepted.priority.is_some()
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Queued => "queued",
        Phase::Running => "running",
        Phase::Closing => "closing",
        Phase::Compensating => "compensating",
        Phase::Ended(_) => PARKED,
    }
}

pub(super) fn read(
    reader: &Reader,
    record: &Record,
    ir: &Arc<Ir>,
    nodes: Vec<NodeRun>,
) -> Result<Run, StoreError> {
    let fields = &record.run;
    let ended: Option<Ended> = reader.json(&record.context, context::ENDED)?;
    let phase = match (fields.get("phase").map(String::as_str), &ended) {
        (Some("queued"), _) => Phase::Queued,
        (Some("running"), _) => Phase::Running,
        (Some("closing"), _) => Phase::Closing,
        (Some("compensating"), _) => Phase::Compensating,
        (Some(PARKED), Some(ended)) => Phase::Ended(ended.status),
        _ => return Err(reader.damaged("phase")),
    };
    let (output, error, ended_at) =
        ended.map_or((Payload::null(), None, None), |ended| (ended.output, ended.error, Some(ended.at)));
    let accepted = context::read_accepted(reader, record)?;
    Ok(Run {
        id: reader.id,
        ir: ir.clone(),
        version: reader.number_or(fields, "version", 1)?,
        accepted: Arc::new(accepted),
        accepted_at: Timestamp::from_millis(reader.number(fields, "at")?),
        phase,
        delayed: fields.contains_key("delayed"),
        paused: fields.contains_key("paused"),
        attempt: reader.number_or(fields, "attempt", 1)?,
        seq: reader.number(fields, "seq")?,
        nodes,
        counter: reader.number(fields, "counter")?,
        approvals: reader.number_or(fields, "approvals", 0)?,
        closing: reader.json(&record.context, context::CLOSING)?,
        deadline: match fields.contains_key("deadline") {
            true => Some(Timestamp::from_millis(reader.number(fields, "deadline")?)),
            false => None,
        },
        signals: reader.json(&record.context, context::SIGNALS)?.unwrap_or_default(),
        patches: reader.json(&record.context, context::PATCHES)?.unwrap_or_default(),
        operations: Arc::default(),
        output,
        error,
        ended_at,
    })
}

/// The part of a timer's name that follows its run.
pub(crate) fn timer_name(key: &TimerKey, ir: &Ir) -> String {
    match key {
        TimerKey::Deadline => "deadline".to_owned(),
        TimerKey::Start => "start".to_owned(),
        TimerKey::Stop => "stop".to_owned(),
        TimerKey::Node { node, claim } => format!("{claim} {}", ir.node(*node).id),
    }
}

fn write_timers(written: &Written<'_>) -> Result<Option<String>, StoreError> {
    let timers = &written.stored_run.timers;
    let named: Vec<(i64, String)> = timers
        .iter()
        .map(|(at, key)| (at.as_millis(), timer_name(key, &written.stored_run.run.ir)))
        .collect();
    if named.is_empty() { Ok(None) } else { json(&named).map(Some) }
}

pub(super) fn read_timers(
    reader: &Reader,
    record: &Record,
    ir: &Ir,
) -> Result<BTreeSet<(Timestamp, TimerKey)>, StoreError> {
    let named: Vec<(i64, String)> = reader.json(&record.run, "timers")?.unwrap_or_default();
    let key = |name: &str| match name.split_once(' ') {
        None if name == "start" => Some(TimerKey::Start),
        None if name == "stop" => Some(TimerKey::Stop),
        None => Some(TimerKey::Deadline),
        Some((claim, node)) => Some(TimerKey::Node { node: ir.find(node)?, claim: claim.parse().ok()? }),
    };
    let timers = named.into_iter().map(|(at, name)| Some((Timestamp::from_millis(at), key(&name)?)));
    timers.collect::<Option<_>>().ok_or_else(|| reader.damaged("timers"))
}

/// The stored parallelism state, with names of nodes instead of indices, which a patch changes.
type NamedParallelism = (Vec<Arc<str>>, Vec<(u8, u64, Arc<str>)>, u64);

fn write_parallelism(written: &Written<'_>) -> Result<Option<String>, StoreError> {
    let Some(parallelism_state) = &written.stored_run.parallelism_state else { return Ok(None) };
    let id = |ix: &NodeIx| written.stored_run.run.ir.node(*ix).id.clone();
    let named: NamedParallelism = (
        parallelism_state.active.iter().map(id).collect(),
        parallelism_state.ready.iter().map(|(priority, arrival, ix)| (*priority, *arrival, id(ix))).collect(),
        parallelism_state.arrivals,
    );
    json(&named).map(Some)
}

pub(super) fn read_parallelism(
    reader: &Reader,
    record: &Record,
    ir: &Ir,
) -> Result<Option<ParallelismState>, StoreError> {
    let Some((active, ready, arrivals)) = reader.json::<NamedParallelism>(&record.run, "play")? else {
        return Ok(None);
    };
    let ready =
        ready.into_iter().filter_map(|(priority, arrival, id)| Some((priority, arrival, ir.find(&id)?)));
    let active = active.iter().filter_map(|id| ir.find(id));
    Ok(Some(ParallelismState { active: active.collect(), ready: ready.collect(), arrivals }))
}
