//! `context:{id}`: the input of a run, the results of its nodes, and rarely used fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_core::error::RunError;
use switchyard_core::run::{Accepted, EndStatus, Logged, Phase, Run};
use switchyard_core::{Payload, Timestamp};
use switchyard_store::StoreError;

use super::{ChildrenRecord, Fields, Reader, Record, json, wait};

// These names have no colon; the fields of nodes have one.
const INPUT: &str = "input";
const ACCEPTED: &str = "accepted";
const TRACE: &str = "trace";
pub(super) const CLOSING: &str = "closing";
pub(super) const SIGNALS: &str = "signals";
pub(super) const PATCHES: &str = "patches";
pub(super) const ENDED: &str = "ended";

/// The former end of a run that is to be retried.
#[derive(Serialize, Deserialize)]
pub(super) struct Ended {
    pub(super) status: EndStatus,
    pub(super) output: Payload,
    pub(super) error: Option<RunError>,
    pub(super) at: Timestamp,
}

type Written = (Fields, BTreeMap<String, ChildrenRecord>);

pub(super) fn write(run: &Run) -> Result<Written, StoreError> {
    let (mut fields, mut children) = Written::default();
    fields.insert(INPUT.to_owned(), json(&run.accepted.input)?);
    if let Some(trace) = &run.accepted.trace {
        fields.insert(TRACE.to_owned(), json(trace)?);
    }
    let rest = Accepted { input: Payload::null(), trace: None, ..(*run.accepted).clone() };
    fields.insert(ACCEPTED.to_owned(), json(&rest)?);
    for ix in run.ir.indices() {
        let (id, node) = (&run.ir.node(ix).id, run.node(ix));
        if let Some(output) = &node.output {
            fields.insert(format!("{id}:output"), json(output)?);
        }
        if let Some(error) = &node.error {
            fields.insert(format!("{id}:error"), json(error)?);
        }
        wait::write(node, id, &mut fields, &mut children)?;
        if let Some(said) = &node.said {
            fields.insert(format!("{id}:chunks"), said.chunks.to_string());
            if said.logged != Logged::default() {
                fields.insert(format!("{id}:logged"), json(&said.logged)?);
            }
            if let Some(checkpoint) = &said.checkpoint {
                fields.insert(format!("{id}:checkpoint"), json(checkpoint)?);
            }
        }
    }
    if let Some(closing) = &run.closing {
        fields.insert(CLOSING.to_owned(), json(closing)?);
    }
    if !run.signals.is_empty() {
        fields.insert(SIGNALS.to_owned(), json(&run.signals)?);
    }
    if !run.patches.is_empty() {
        fields.insert(PATCHES.to_owned(), json(&run.patches)?);
    }
    if let (Phase::Ended(status), Some(at)) = (run.phase, run.ended_at) {
        let ended = Ended { status, output: run.output.clone(), error: run.error.clone(), at };
        fields.insert(ENDED.to_owned(), json(&ended)?);
    }
    Ok((fields, children))
}

pub(super) fn read_accepted(reader: &Reader, record: &Record) -> Result<Accepted, StoreError> {
    let missing = || reader.damaged(ACCEPTED);
    let accepted: Accepted = reader.json(&record.context, ACCEPTED)?.ok_or_else(missing)?;
    let input = reader.json(&record.context, INPUT)?.ok_or_else(|| reader.damaged(INPUT))?;
    Ok(Accepted { input, trace: reader.json(&record.context, TRACE)?, ..accepted })
}
