//! Queues and dead letters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use switchyard_api::{DeadLetterView, Delivery, QueueView, QueuesView};
use switchyard_core::in_flight::band;
use switchyard_core::ir::Ir;
use switchyard_core::run::{Event, EventKind, ReleaseReason};
use switchyard_core::{Hash, OperationId, RunId};
use switchyard_store::plain::oversized;
use switchyard_store::{DeadKind, DeadLetter, DeadLetterGroup, Mutation, PRIORITIES, Purge, StoreError};

use super::operation::operation as asked;
use super::{Engine, EngineError, History};
use crate::Principal;

/// The dead letters that a purge removes.
#[derive(Clone, Debug, Serialize)]
pub enum PurgeRequest {
    One(String),
    /// Dead letters older than this.
    OlderThan(Duration),
    All,
}

/// How many dead letters are counted at most.
const COUNTED_MAX: usize = 10_000;

impl History {
    /// Dead letters by kind, node and reason, the largest groups first.
    pub async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, EngineError> {
        Ok(self.archive.dead_letter_groups(limit).await?)
    }
}

impl Engine {
    /// The depth of every queue by priority, and the number of dead letters.
    pub async fn queues(&self) -> Result<QueuesView, EngineError> {
        let letters = self.history.dead_letters(COUNTED_MAX).await?;
        let mut dead: HashMap<(Arc<str>, Arc<str>), usize> = HashMap::new();
        for letter in &letters {
            if let (Some(queue), Some(priority)) = (&letter.queue, &letter.priority) {
                *dead.entry((queue.clone(), priority.clone())).or_default() += 1;
            }
        }
        let mut queues = Vec::new();
        let workers = self.hot.workers().await?;
        let serving = |queue: &str| workers.iter().filter(|worker| worker.serves(queue)).count();
        for depth in self.hot.queues().await? {
            for (priority, lane) in PRIORITIES.into_iter().zip(depth.bands) {
                let dead_letters = dead.remove(&(depth.queue.clone(), priority.into())).unwrap_or(0);
                if lane.waiting + lane.claimed + dead_letters > 0 {
                    queues.push(QueueView {
                        queue: depth.queue.clone(),
                        priority: priority.into(),
                        waiting: lane.waiting,
                        claimed: lane.claimed,
                        oldest_at: lane.oldest,
                        dead_letters,
                        workers: serving(&depth.queue),
                    });
                }
            }
        }
        // Queues that have dead letters and nothing else.
        queues.extend(dead.into_iter().map(|((queue, priority), dead_letters)| QueueView {
            queue,
            priority,
            waiting: 0,
            claimed: 0,
            oldest_at: None,
            dead_letters,
            workers: 0,
        }));
        queues.sort_by(|a, b| (&a.queue, rank(&a.priority)).cmp(&(&b.queue, rank(&b.priority))));
        Ok(QueuesView { queues, dead_letters: letters.len() })
    }

    /// Redrives a dead letter: a task's topmost run is retried and returned; a signal is handled again.
    ///
    /// The retry of the run removes the letter, so the letter is noted under the operation first: a repetition reads
    /// the note to find its answer and the steps that are still missing.
    pub async fn redrive(
        &self,
        by: &Principal,
        id: &str,
        operation: &OperationId,
    ) -> Result<Option<RunId>, EngineError> {
        let request = self.asks(by, operation, "redrive", &(id, by.name()))?;
        let noted = self.mutate(&request, || async move {
            let letter = self.archive.dead_letter(id).await?;
            let letter = letter.ok_or_else(|| StoreError::unknown("dead letter", id))?;
            let note = serde_json::to_value(&letter);
            Ok(Mutation::Note(note.map_err(|error| StoreError::Corrupt(error.to_string()))?))
        });
        let letter: DeadLetter = serde_json::from_value(noted.await?.note()?)
            .map_err(|error| StoreError::Corrupt(format!("a note on dead letter {id}: {error}")))?;
        let run = match (letter.kind, letter.run_id, &letter.signal) {
            (DeadKind::Task, Some(run), _) => {
                let run = self.eldest(run).await?;
                let asked = asked(operation, &("redrive", id, by.name()));
                self.retry_as(by, run, &asked).await?;
                Some(run)
            }
            (DeadKind::OutboxEntry, ..) => {
                let why = "an entry of the outbox cannot be sent again: its run was rebuilt from the archive";
                return Err(EngineError::BadRequest(why.into()));
            }
            (_, _, Some(signal)) if oversized(signal).is_some() => {
                let message = format!("{id} keeps only the beginning of a signal that was too large");
                return Err(EngineError::BadRequest(message));
            }
            (_, _, Some(signal)) => {
                // A repeated signal settles its claim once.
                self.until_known(operation, || async { Ok(self.hot.signal_again(signal).await?) }).await?;
                None
            }
            _ => return Err(StoreError::Corrupt(format!("dead letter {id} says nothing")).into()),
        };
        // A letter that was stored again meanwhile is kept. The redrive succeeded, even if the letter cannot be
        // removed.
        if let Err(error) = self.archive.purge(Purge::Seen(letter.id.clone(), letter.at)).await {
            tracing::warn!(%error, letter = %letter.id, "a dead letter was redriven and could not be removed");
        }
        Ok(run)
    }

    /// Removes dead letters. Returns how many.
    pub async fn purge(
        &self,
        by: &Principal,
        operation: &OperationId,
        which: &PurgeRequest,
    ) -> Result<usize, EngineError> {
        let request = self.asks(by, operation, "purge", which)?;
        let outcome = self.mutate(&request, || async move {
            Ok(Mutation::PurgeDeadLetters(match which {
                PurgeRequest::One(id) => Purge::One(id.as_str().into()),
                PurgeRequest::OlderThan(age) => Purge::Before(self.clock.now().minus(*age)),
                PurgeRequest::All => Purge::All,
            }))
        });
        Ok(outcome.await?.removed()?)
    }

    /// The topmost ancestor of a run, which is the run that a redrive retries.
    async fn eldest(&self, mut run: RunId) -> Result<RunId, EngineError> {
        loop {
            let record = self.archive.run(run).await?.ok_or(EngineError::UnknownRun(run))?;
            match record.parent {
                Some(parent) => run = parent,
                None => return Ok(run),
            }
        }
    }
}

impl History {
    /// Dead letters, newest first.
    pub async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetterView>, EngineError> {
        let mut graphs = HashMap::new();
        let mut views = Vec::new();
        for letter in self.archive.dead_letters(limit).await? {
            views.push(self.placed(letter, &mut graphs).await?);
        }
        Ok(views)
    }

    /// A dead letter with every delivery that led to it.
    pub async fn dead_letter(&self, id: &str) -> Result<DeadLetterView, EngineError> {
        let letter = self.archive.dead_letter(id).await?;
        let letter = letter.ok_or_else(|| StoreError::unknown("dead letter", id))?;
        let mut view = self.placed(letter, &mut HashMap::new()).await?;
        if let (Some(run), Some(node)) = (view.letter.run_id, &view.letter.node) {
            let events = self.events(run, 0, view.letter.seq).await?;
            view.deliveries = Some(deliveries(&events, node));
        }
        Ok(view)
    }

    /// Adds the queue and the priority of the letter's node, if the graph still has the node.
    async fn placed(
        &self,
        letter: DeadLetter,
        graphs: &mut HashMap<Hash, Arc<Ir>>,
    ) -> Result<DeadLetterView, EngineError> {
        let mut view = DeadLetterView { letter, queue: None, priority: None, deliveries: None };
        let (Some(run), Some(node)) = (view.letter.run_id, &view.letter.node) else { return Ok(view) };
        let Some(record) = self.archive.run(run).await? else { return Ok(view) };
        let ir = match graphs.get(&record.definition) {
            Some(ir) => ir.clone(),
            None => self.program(record.definition).await?.ir.clone(),
        };
        if let Some(ix) = ir.find(node) {
            view.queue = Some(ir.node(ix).queue.clone());
            let priority = ir.node(ix).priority_in(self.priority_of(run).await?);
            view.priority = Some(PRIORITIES[band(priority)].into());
        }
        graphs.insert(record.definition, ir);
        Ok(view)
    }

    /// The priority that a run was submitted with.
    async fn priority_of(&self, run: RunId) -> Result<Option<u8>, EngineError> {
        let first = self.archive.events(run, 0, 1).await?;
        Ok(match first.first().map(|event| &event.kind) {
            Some(EventKind::RunAccepted(accepted)) => accepted.priority,
            _ => None,
        })
    }
}

fn rank(priority: &str) -> usize {
    PRIORITIES.iter().position(|known| *known == priority).unwrap_or(PRIORITIES.len())
}

/// The deliveries of a node since it last started over: the worker and the result of each.
fn deliveries(events: &[Event], of: &str) -> Vec<Delivery> {
    let mut found: Vec<Delivery> = Vec::new();
    for event in events {
        let came: Arc<str> = match &event.kind {
            EventKind::RunRetried { reset, .. } if reset.iter().any(|node| &**node == of) => {
                found.clear();
                continue;
            }
            EventKind::NodeStarted { node, attempt, worker, .. } if &**node == of => {
                let (worker, attempt) = (worker.clone(), *attempt);
                found.push(Delivery { worker, attempt, at: event.at, ended: None, ended_at: None });
                continue;
            }
            EventKind::NodeReleased { node, reason } if &**node == of => match reason {
                ReleaseReason::HandedBack => "handed back".into(),
                ReleaseReason::LeaseExpired => "the worker went silent".into(),
                ReleaseReason::Restart => "its process ended".into(),
            },
            EventKind::NodeRetrying { node, error, .. } if &**node == of => error.to_string().into(),
            EventKind::NodeFailed { node, error, .. } if &**node == of => error.to_string().into(),
            EventKind::NodeWaiting { node, .. } if &**node == of => "it waited".into(),
            _ => continue,
        };
        if let Some(last) = found.last_mut() {
            (last.ended, last.ended_at) = (Some(came), Some(event.at));
        }
    }
    found
}
