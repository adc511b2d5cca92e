//! Reads any run, in its newest or any earlier state. Needs only the archive.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use switchyard_core::ir::Ir;
use switchyard_core::run::{Event, EventKind, Run};
use switchyard_core::{Hash, RunId};
use switchyard_lang::Program;
use switchyard_store::{Archive, ArchiveMark};

use super::EngineError;
use crate::Payloads;

/// How many events are read at once.
const PAGE: usize = 10_000;

#[derive(Clone)]
pub struct History {
    pub(super) archive: Arc<dyn Archive>,
    payloads: Payloads,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("History")
    }
}

impl History {
    pub fn new(archive: Arc<dyn Archive>, payloads: Payloads) -> Self {
        Self { archive, payloads }
    }

    pub fn payloads(&self) -> &Payloads {
        &self.payloads
    }

    /// The identity of the archive and its current position.
    pub async fn mark(&self) -> Result<ArchiveMark, EngineError> {
        Ok(self.archive.mark().await?)
    }

    /// The events of a run after `after`, up to and including `until`.
    pub async fn events(
        &self,
        run: RunId,
        after: u64,
        until: Option<u64>,
    ) -> Result<Vec<Event>, EngineError> {
        let until = until.unwrap_or(u64::MAX);
        let mut events: Vec<Event> = Vec::new();
        loop {
            let last = events.last().map_or(after, |event| event.seq);
            let page = self.archive.events(run, last, PAGE).await?;
            let full = page.len() == PAGE;
            events.extend(page.into_iter().filter(|event| event.seq <= until));
            if !full || events.last().is_some_and(|event| event.seq >= until) {
                return Ok(events);
            }
        }
    }

    /// The state of a run, now or right after its event `at`: time travel by folding its history.
    pub async fn state(&self, run: RunId, at: Option<u64>) -> Result<Run, EngineError> {
        if at == Some(0) {
            return Err(EngineError::BadRequest("a run's history begins with event 1".into()));
        }
        let events = self.events(run, 0, at).await?;
        let Some(last) = events.last() else { return Err(EngineError::UnknownRun(run)) };
        if let Some(at) = at.filter(|at| *at > last.seq) {
            let message = format!("{run} has {} events; there is no event {at}", last.seq);
            return Err(EngineError::BadRequest(message));
        }
        let mut irs = HashMap::new();
        self.learn_graphs(&events, &mut irs).await?;
        Ok(Run::replay(&events, &|hash| irs.get(&hash).cloned())?)
    }

    /// Adds every graph that a history mentions and that is not in the map yet.
    pub(super) async fn learn_graphs(
        &self,
        events: &[Event],
        irs: &mut HashMap<Hash, Arc<Ir>>,
    ) -> Result<(), EngineError> {
        for event in events {
            let hash = match &event.kind {
                EventKind::RunAccepted(accepted) => accepted.definition,
                EventKind::RunPatched(patched) => patched.definition,
                _ => continue,
            };
            if let Entry::Vacant(place) = irs.entry(hash) {
                place.insert(self.program(hash).await?.ir.clone());
            }
        }
        Ok(())
    }

    pub async fn program(&self, hash: Hash) -> Result<Program, EngineError> {
        let text = self.definition(hash).await?;
        Program::from_canonical(&text).map_err(EngineError::Invalid)
    }
}
