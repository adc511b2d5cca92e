//! The audit of `doctor --deep`: checks every history of an archive.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use switchyard_core::ir::Ir;
use switchyard_core::run::{Event, Run};
use switchyard_core::{CasRef, Hash, Payload, RunId};
use switchyard_store::{RunFilter, RunRecord, StoreError};

use super::{EngineError, History};

/// How many runs are read at once.
const PAGE: usize = 200;

/// The progress and the findings of an audit.
#[derive(Debug, Default)]
pub struct Audit {
    pub runs: usize,
    pub events: usize,
    pub payloads: usize,
    pub faults: Vec<(RunId, String)>,
}

/// Graphs and payloads that were loaded already.
#[derive(Default)]
struct Seen {
    graphs: HashMap<Hash, Arc<Ir>>,
    payloads: HashSet<Hash>,
}

impl History {
    /// Reads every event (which compares its checksum), replays every history, compares it with the run's row, and
    /// reads every payload that it mentions (which compares its hash). `progress` is called after every page of runs.
    pub async fn audit(&self, mut progress: impl FnMut(&Audit)) -> Result<Audit, EngineError> {
        let (mut audit, mut seen) = (Audit::default(), Seen::default());
        let mut filter = RunFilter { include_children: true, limit: PAGE, ..RunFilter::default() };
        loop {
            let page = self.archive.runs(&filter).await?;
            for record in &page.items {
                self.audit_run(record, &mut audit, &mut seen).await?;
            }
            progress(&audit);
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => return Ok(audit),
            }
        }
    }

    async fn audit_run(
        &self,
        record: &RunRecord,
        audit: &mut Audit,
        seen: &mut Seen,
    ) -> Result<(), EngineError> {
        let run = record.run_id;
        audit.runs += 1;
        let events = match self.events(run, 0, None).await {
            Ok(events) => events,
            Err(error) => return audit.note(run, error),
        };
        if events.is_empty() && self.archive.run(run).await?.is_none() {
            // The run was removed since the list was read.
            return Ok(());
        }
        audit.events += events.len();
        if let Err(error) = self.compare(record, &events, seen).await {
            audit.note(run, error)?;
        }
        for reference in references(&events) {
            if seen.payloads.contains(&reference.hash) {
                continue;
            }
            audit.payloads += 1;
            match self.payloads().cas().get(reference).await {
                Ok(_) => drop(seen.payloads.insert(reference.hash)),
                Err(error) => audit.note(run, error.into())?,
            }
        }
        Ok(())
    }

    /// Checks that a history has no gaps, can be replayed, and leads to the state in the run's row.
    async fn compare(
        &self,
        record: &RunRecord,
        events: &[Event],
        seen: &mut Seen,
    ) -> Result<(), EngineError> {
        let wrong = |what: String| Err(EngineError::Store(StoreError::Corrupt(what)));
        if let Some((expected, event)) = (1..).zip(events).find(|(expected, event)| event.seq != *expected) {
            return wrong(format!("event {expected} is missing, event {} is there", event.seq));
        }
        // A run in flight may have changed since its row was read.
        if (events.len() as u64) < record.last_seq {
            return wrong(format!("event {} is missing", events.len() + 1));
        }
        self.learn_graphs(events, &mut seen.graphs).await?;
        let replayed = Run::replay(events, &|hash| seen.graphs.get(&hash).cloned())?;
        if replayed.seq == record.last_seq && replayed.status() != record.status {
            return wrong(format!(
                "its events leave it {}, its row says {}",
                replayed.status(),
                record.status
            ));
        }
        Ok(())
    }
}

impl Audit {
    /// Records damage. An error of a store that does not answer ends the audit.
    fn note(&mut self, run: RunId, error: EngineError) -> Result<(), EngineError> {
        match error {
            EngineError::Store(error) if error.is_outage() => Err(error.into()),
            EngineError::Store(StoreError::Corrupt(what)) => {
                self.faults.push((run, what));
                Ok(())
            }
            other => {
                self.faults.push((run, other.to_string()));
                Ok(())
            }
        }
    }
}

fn references(events: &[Event]) -> Vec<CasRef> {
    let mut found = Vec::new();
    for event in events {
        event.kind.for_each_payload(&mut |payload| {
            if let Payload::Cas(reference) = payload {
                found.push(*reference);
            }
        });
    }
    found
}
