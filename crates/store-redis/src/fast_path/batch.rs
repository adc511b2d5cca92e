//! Concurrent steps are batched: one call of the script is in flight, later callers join the next.
//!
//! When a call has been answered, the first waiting caller leads the next one, for itself and for all others that fit.
//! Under load it yields first, so that other ready slots of this process join as well. A lone slot never waits.
//!
//! Two calls in flight were tried: each carried fewer steps of the chain of `switchyard bench`, and Redis had more to
//! do for the same number of steps.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use switchyard_core::in_flight::Want;
use switchyard_core::run::{ClaimRef, Settlement, Task, TaskOutcome};
use switchyard_store::StoreError;
use tokio::sync::oneshot;

use super::route::EDGES_AT_ONCE;
use super::{AT_ONCE, StepAnswer};
use crate::store::RedisStore;

/// The settlements of one caller, and how many tasks it wants after them.
#[derive(Debug)]
pub(crate) struct StepRequest {
    pub(crate) settlements: Vec<Settlement>,
    pub(crate) want: Want,
    pub(crate) max: usize,
    /// The number of edges that the settlements decide.
    edges: usize,
}

impl StepRequest {
    pub(crate) fn new(settlements: Vec<Settlement>, want: &Want, max: usize, edges: usize) -> Self {
        Self { settlements, want: want.clone(), max, edges }
    }

    /// A request that hands back tasks whose caller has gone.
    fn handing_back(tasks: Vec<Task>, want: &Want) -> Self {
        let hand_back = |task: Task| {
            let claim = ClaimRef { run: task.run, node: task.node, claim: task.claim };
            Settlement { claim, outcome: TaskOutcome::HandedBack }
        };
        Self::new(tasks.into_iter().map(hand_back).collect(), want, 0, 0)
    }

    /// Whether one call can claim tasks for both requests.
    fn claims_like(&self, other: &Self) -> bool {
        let (a, b) = (&self.want, &other.want);
        self.max == 0
            || other.max == 0
            || (a.worker == b.worker && a.queues == b.queues && a.lease == b.lease)
    }
}

struct Waiting {
    request: StepRequest,
    turn: oneshot::Sender<Turn>,
}

enum Turn {
    /// Another caller's batch has carried the request.
    Done(Result<StepAnswer, StoreError>),
    /// This caller makes the call, for itself and for waiting callers.
    Lead(StepRequest, Lead),
}

/// The callers that wait for the next call.
#[derive(Default)]
pub(crate) struct StepBatcher {
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// A call is in flight, or a caller is about to make one.
    busy: bool,
    /// The last call carried more than one request.
    crowded: bool,
    waiting: VecDeque<Waiting>,
}

impl Line {
    /// Removes the waiting requests that fit into one call with this one.
    fn take_fitting(&mut self, first: &StepRequest) -> Vec<Waiting> {
        let (mut settlements, mut max, mut edges) = (first.settlements.len(), first.max, first.edges);
        let mut along: Vec<Waiting> = Vec::new();
        for other in std::mem::take(&mut self.waiting) {
            let request = &other.request;
            let fits = settlements + request.settlements.len() <= AT_ONCE
                && max + request.max <= AT_ONCE
                && edges + request.edges <= EDGES_AT_ONCE;
            let requests = std::iter::once(first).chain(along.iter().map(|chosen| &chosen.request));
            let claims = requests.into_iter().find(|chosen| chosen.max > 0);
            if fits && claims.is_none_or(|chosen| chosen.claims_like(request)) {
                settlements += request.settlements.len();
                max += request.max;
                edges += request.edges;
                along.push(other);
            } else {
                self.waiting.push_back(other);
            }
        }
        self.crowded = !along.is_empty();
        along
    }
}

/// The right to make the call. Passes to a waiting caller when it is dropped.
struct Lead(Arc<StepBatcher>);

impl Drop for Lead {
    fn drop(&mut self) {
        let next = {
            let mut line = self.0.line.lock();
            let next = line.waiting.pop_front();
            line.busy = next.is_some();
            next
        };
        if let Some(Waiting { request, turn }) = next {
            // If the receiver has gone, the value is dropped and this runs again.
            drop(turn.send(Turn::Lead(request, Self(self.0.clone()))));
        }
    }
}

impl RedisStore {
    /// Makes one step, alone or in a batch with other callers.
    pub(crate) async fn batched_step(&self, request: StepRequest) -> Result<StepAnswer, StoreError> {
        let (request, lead) = match self.line_up(request) {
            Ok(at_once) => at_once,
            Err(turn) => match turn.await {
                Ok(Turn::Lead(request, lead)) => (request, lead),
                Ok(Turn::Done(outcome)) => return outcome,
                Err(_) => return Err(StoreError::unavailable("a batched call was broken off; try again")),
            },
        };
        if self.step_batcher.line.lock().crowded {
            tokio::task::yield_now().await;
        }
        let along = self.step_batcher.line.lock().take_fitting(&request);
        let want = request.want.clone();
        let (others, turns): (Vec<StepRequest>, Vec<_>) =
            along.into_iter().map(|other| (other.request, other.turn)).unzip();
        let requests: Vec<StepRequest> = std::iter::once(request).chain(others).collect();
        let outcomes = self.run_step(&requests).await;
        let mut outcomes = match outcomes {
            Ok(outcomes) => outcomes.into_iter(),
            Err(error) => requests.iter().map(|_| Err(error.clone())).collect::<Vec<_>>().into_iter(),
        };
        let own = outcomes.next().unwrap_or_else(|| Ok(StepAnswer::default()));
        let mut unwanted = Vec::new();
        for (turn, outcome) in turns.into_iter().zip(outcomes) {
            if let Err(Turn::Done(Ok(outcome))) = turn.send(Turn::Done(outcome)) {
                unwanted.extend(outcome.tasks);
            }
        }
        // Dropped after the callers of this batch have their answers: their next steps can join the next call.
        drop(lead);
        if !unwanted.is_empty() {
            self.run_step(&[StepRequest::handing_back(unwanted, &want)]).await?;
        }
        own
    }

    /// The request and the right to make the call, if none is in flight; otherwise a receiver for the caller's turn.
    fn line_up(&self, request: StepRequest) -> Result<(StepRequest, Lead), oneshot::Receiver<Turn>> {
        let mut line = self.step_batcher.line.lock();
        if !line.busy {
            line.busy = true;
            return Ok((request, Lead(self.step_batcher.clone())));
        }
        let (turn, coming) = oneshot::channel();
        line.waiting.push_back(Waiting { request, turn });
        Err(coming)
    }
}
