//! Reads the histories page by page, without the trees and indexes over the pages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use switchyard_core::run::{Event, EventKind};
use switchyard_core::{Hash, RunId, Timestamp};
use switchyard_store::{StoreError, verify_event};

use super::Pages;
use super::rows::{EventRow, Fact, definition};
use crate::sqlite::format::page::{self, Cell};

/// The location of a row.
#[derive(Debug, Clone, Copy)]
struct Spot {
    /// A page, or the number of a frame of the log that does not verify.
    page: u32,
    is_doubtful: bool,
    cell: u32,
}

#[derive(Debug, Default)]
struct Run {
    id: Option<RunId>,
    /// Ids from an index that may be the id of this run.
    maybe: HashSet<RunId>,
    /// Whether the row of the run says that it has ended.
    has_ended: bool,
    /// The seq of the newest event, according to the index over events.
    last_seq: u64,
    events: BTreeMap<u64, Vec<Spot>>,
}

/// A damaged database, scanned once. Rows are read again on demand.
#[derive(Debug)]
pub(crate) struct Survey {
    pages: Pages,
    runs: BTreeMap<i64, Run>,
    definitions: HashMap<Hash, Spot>,
}

/// How a salvage treats a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Whole,
    /// The history is continued from an earlier point. Work is repeated, never skipped.
    Cut,
    /// The history had ended, and would start over; or its beginning is missing.
    LeftOut,
}

/// The readable part of a history.
#[derive(Debug)]
pub(crate) struct History {
    /// The id of the run, or its number in the database if the id is gone.
    pub(crate) name: String,
    /// The events from the first on, without a gap.
    pub(crate) events: Vec<Event>,
    /// The events after the first one that is missing or damaged.
    pub(crate) behind: Vec<Event>,
    pub(crate) verdict: Verdict,
    /// Why the history is not whole.
    pub(crate) fault: Option<String>,
}

impl Survey {
    /// Reads every page. The caller makes sure that no process writes.
    pub(crate) fn of(path: &Path) -> Result<Self, StoreError> {
        let cannot = |e: io::Error| StoreError::unavailable(format!("cannot read {}: {e}", path.display()));
        let pages = Pages::open(path).map_err(cannot)?;
        let free = pages.free();
        let mut survey = Self { pages, runs: BTreeMap::new(), definitions: HashMap::new() };
        for page in 1..=survey.pages.count {
            // An unreadable page counts as damage.
            if !free.contains(&page)
                && let Ok(bytes) = survey.pages.read(page)
            {
                survey.note(&bytes, page, false);
            }
        }
        for frame in 0..survey.pages.doubtful_count() {
            if let Ok(bytes) = survey.pages.doubtful(frame) {
                survey.note(&bytes, frame, true);
            }
        }
        Ok(survey)
    }

    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    fn note(&mut self, bytes: &[u8], page: u32, is_doubtful: bool) {
        for (n, cell) in (0..).zip(page::cells(bytes, page == 1 && !is_doubtful)) {
            let spot = Spot { page, is_doubtful, cell: n };
            let Some(record) = self.pages.record(&cell) else { continue };
            let Some(values) = page::values(&record) else { continue };
            if let Some(row) = EventRow::of(&values).filter(|_| cell.rowid.is_some()) {
                // From a page that does not verify, only rows with their own checksum are used.
                if !is_doubtful || row.checksum.is_some() {
                    let run = self.runs.entry(row.run_no).or_default();
                    run.events.entry(row.seq).or_default().push(spot);
                }
                continue;
            }
            match Fact::of(&cell, &values) {
                Some(Fact::Run { no, id, status }) if !is_doubtful => {
                    let run = self.runs.entry(no).or_default();
                    run.id = Some(id);
                    run.has_ended = status.is_some_and(|status| status.is_terminal());
                }
                Some(Fact::Run { no, id, .. } | Fact::MaybeRun { no, id }) => {
                    self.runs.entry(no).or_default().maybe.insert(id);
                }
                Some(Fact::Event { run_no, seq }) => {
                    let run = self.runs.entry(run_no).or_default();
                    run.last_seq = run.last_seq.max(seq);
                }
                Some(Fact::Definition(hash)) => drop(self.definitions.insert(hash, spot)),
                None => {}
            }
        }
    }

    /// Every definition whose text matches its hash.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (Hash, Arc<str>)> {
        self.definitions.values().filter_map(|spot| {
            let record = self.record(*spot)?;
            let values = page::values(&record)?;
            definition(&values).map(|(hash, text)| (hash, text.into()))
        })
    }

    /// Every run with a known id or any event, in the order of acceptance.
    pub(crate) fn histories(&self) -> impl Iterator<Item = History> {
        // SQLite numbers runs from 1: number 0 is a record that was overwritten with zeros.
        let known = |no: i64, run: &Run| no > 0 && (run.id.is_some() || !run.events.is_empty());
        self.runs.iter().filter(move |(no, run)| known(**no, run)).map(|(no, run)| self.history(*no, run))
    }

    fn history(&self, no: i64, run: &Run) -> History {
        let Some(id) = run.id.or_else(|| self.proven_id(run)) else {
            let fault = format!("its id is gone; {} of its events are there", run.events.len());
            return History {
                name: format!("run number {no}"),
                events: Vec::new(),
                behind: Vec::new(),
                verdict: Verdict::LeftOut,
                fault: Some(fault),
            };
        };
        let mut events: Vec<Event> = Vec::new();
        let mut behind = Vec::new();
        let mut fault = None;
        for (seq, spots) in &run.events {
            let event = spots.iter().find_map(|spot| self.event(*spot, id));
            match event {
                Some(event) if fault.is_none() && *seq == events.len() as u64 + 1 => events.push(event),
                found => {
                    let first = events.len() + 1;
                    fault.get_or_insert_with(|| format!("event {first} is missing or damaged"));
                    behind.extend(found);
                }
            }
        }
        let is_end = |event: &Event| matches!(event.kind, EventKind::RunEnded { .. });
        let goes_on = (events.len() as u64) < run.last_seq.max(1);
        if fault.is_none() && (goes_on || run.has_ended && !events.last().is_some_and(is_end)) {
            fault = Some(format!("what came after event {} is missing", events.len()));
        }
        let had_ended = run.has_ended || behind.last().is_some_and(is_end);
        let verdict = match &fault {
            None => Verdict::Whole,
            Some(_) if had_ended || events.is_empty() => Verdict::LeftOut,
            Some(_) => Verdict::Cut,
        };
        History { name: id.to_string(), events, behind, verdict, fault }
    }

    /// The candidate id that matches the checksum of an event.
    fn proven_id(&self, run: &Run) -> Option<RunId> {
        let spots = || run.events.values().flatten();
        run.maybe.iter().copied().find(|id| spots().any(|spot| self.is_proven(*spot, *id)))
    }

    fn is_proven(&self, spot: Spot, id: RunId) -> bool {
        let fits = |row: &EventRow<'_>| row.checksum.is_some() && event_of(row, id).is_some();
        self.with_event(spot, fits).unwrap_or(false)
    }

    fn event(&self, spot: Spot, id: RunId) -> Option<Event> {
        self.with_event(spot, |row| event_of(row, id))?
    }

    fn with_event<T>(&self, spot: Spot, read: impl FnOnce(&EventRow<'_>) -> T) -> Option<T> {
        let record = self.record(spot)?;
        let values = page::values(&record)?;
        EventRow::of(&values).map(|row| read(&row))
    }

    fn record(&self, spot: Spot) -> Option<Vec<u8>> {
        let bytes = match spot.is_doubtful {
            true => self.pages.doubtful(spot.page),
            false => self.pages.read(spot.page),
        };
        let bytes = bytes.ok()?;
        let is_first = spot.page == 1 && !spot.is_doubtful;
        let cell: Cell<'_> = page::cells(&bytes, is_first).nth(spot.cell as usize)?;
        self.pages.record(&cell)
    }
}

fn event_of(row: &EventRow<'_>, run: RunId) -> Option<Event> {
    let at = Timestamp::from_millis(row.at);
    verify_event(row.checksum, run, row.seq, at, row.body.as_bytes()).ok()?;
    Some(Event { run, seq: row.seq, at, kind: serde_json::from_str(row.body).ok()? })
}
