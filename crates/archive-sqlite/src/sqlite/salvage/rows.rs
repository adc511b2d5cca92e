//! Recognizes rows by their shape. A page does not say which table it belongs to, and the pages that do may be the
//! damaged ones.

use switchyard_core::run::RunStatus;
use switchyard_core::{Hash, RunId};

use super::Pages;
use crate::sqlite::format::page::{self, Cell, Value};

/// A row of `events`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sqlite) struct EventRow<'r> {
    pub(in crate::sqlite) run_no: i64,
    pub(in crate::sqlite) seq: u64,
    pub(in crate::sqlite) at: i64,
    pub(in crate::sqlite) body: &'r str,
    pub(in crate::sqlite) checksum: Option<i64>,
}

impl<'r> EventRow<'r> {
    pub(in crate::sqlite) fn of(values: &[Value<'r>]) -> Option<Self> {
        let [Value::Null, run_no, seq, at, kind, body, rest @ ..] = values else { return None };
        kind.text()?;
        Some(Self {
            run_no: run_no.integer()?,
            seq: u64::try_from(seq.integer()?).ok()?,
            at: at.integer()?,
            body: body.text()?,
            checksum: rest.first().and_then(|sum| sum.integer()),
        })
    }
}

/// Information from a row that is not an event.
#[derive(Debug, PartialEq)]
pub(super) enum Fact {
    /// A row of `runs`: the id, and the status after its last event.
    Run { no: i64, id: RunId, status: Option<RunStatus> },
    /// A row of an index over ids: the id is that of this run or of its parent.
    MaybeRun { no: i64, id: RunId },
    /// A row of the index over `events`: the event exists or existed.
    Event { run_no: i64, seq: u64 },
    /// A row of `definitions` whose text matches its hash.
    Definition(Hash),
}

impl Fact {
    pub(super) fn of(cell: &Cell<'_>, values: &[Value<'_>]) -> Option<Self> {
        match (cell.rowid, values) {
            (Some(no), [Value::Null, id, workflow, _, _, status, _, _, ..]) => {
                workflow.text()?;
                Some(Self::Run { no, id: id.text()?.parse().ok()?, status: status.text()?.parse().ok() })
            }
            (None, [id, no]) if no.integer().is_some() => {
                Some(Self::MaybeRun { no: no.integer()?, id: id.text()?.parse().ok()? })
            }
            (None, [run_no, seq, no]) if no.integer().is_some() => {
                Some(Self::Event { run_no: run_no.integer()?, seq: u64::try_from(seq.integer()?).ok()? })
            }
            (None, values) => definition(values).map(|(hash, _)| Self::Definition(hash)),
            _ => None,
        }
    }
}

/// Parses a row of `definitions`, if its text matches its hash.
pub(super) fn definition<'r>(values: &[Value<'r>]) -> Option<(Hash, &'r str)> {
    let [hash, text] = values else { return None };
    let hash: Hash = hash.text()?.parse().ok()?;
    text.text().filter(|text| Hash::of(text.as_bytes()) == hash).map(|text| (hash, text))
}

/// The events on a page, by run and seq.
pub(in crate::sqlite) fn event_keys(pages: &Pages, page: u32) -> Vec<(i64, u64)> {
    let Ok(bytes) = pages.read(page) else { return Vec::new() };
    let key = |cell: Cell<'_>| {
        cell.rowid?;
        let record = pages.record(&cell)?;
        let values = page::values(&record)?;
        EventRow::of(&values).map(|row| (row.run_no, row.seq))
    };
    page::cells(&bytes, page == 1).filter_map(key).collect()
}
