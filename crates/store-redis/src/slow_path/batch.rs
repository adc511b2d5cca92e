//! Batches settlements on the slow path by graph: children of a `map` end by the hundred, and all of them change
//! their parent. Callers that arrive while a decision is made join the next one.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use switchyard_core::Hash;
use switchyard_core::run::{Settled, Settlement, TaskOutcome, WaitFor};
use switchyard_store::StoreError;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use super::ReadSet;
use crate::store::RedisStore;

/// The most settlements of one decision.
const AT_ONCE: usize = 200;

type Answer = Result<Vec<Settled>, StoreError>;

/// The callers that wait for the next decision.
#[derive(Default)]
pub(crate) struct SettlementBatcher {
    waiting: Mutex<Vec<Caller>>,
    turn: AsyncMutex<()>,
}

struct Caller {
    /// The definition of the caller's first run.
    definition: Option<Hash>,
    settlements: Vec<Settlement>,
    answer: oneshot::Sender<Answer>,
}

impl RedisStore {
    /// Lets the core settle these in order, in a batch with other callers.
    pub(crate) async fn settle_on_slow_path(&self, settlements: Vec<Settlement>) -> Answer {
        let definition =
            settlements.first().and_then(|first| self.graphs.of_run(first.claim.run)).map(|on| on.definition);
        let (answer, mut answered) = oneshot::channel();
        self.settlement_batcher.waiting.lock().push(Caller { definition, settlements, answer });
        let _turn = self.settlement_batcher.turn.lock().await;
        if let Ok(answer) = answered.try_recv() {
            return answer;
        }
        let callers = self.settlement_batcher.take(definition);
        self.settle_callers(callers).await;
        answered
            .try_recv()
            .unwrap_or_else(|_| Err(StoreError::unavailable("a settlement was lost; try again")))
    }

    async fn settle_callers(&self, callers: Vec<Caller>) {
        let all: Vec<Settlement> = callers.iter().flat_map(|caller| caller.settlements.clone()).collect();
        match self.settle_in_core(&all).await {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for Caller { settlements, answer, .. } in callers {
                    // A caller that has gone does not need its answer.
                    let _ = answer.send(Ok(answers.by_ref().take(settlements.len()).collect()));
                }
            }
            // A run that cannot be read must not hold up the others.
            Err(_) if callers.len() > 1 => {
                for Caller { settlements, answer, .. } in callers {
                    let _ = answer.send(self.settle_in_core(&settlements).await);
                }
            }
            Err(error) => {
                for caller in callers {
                    let _ = caller.answer.send(Err(error.clone()));
                }
            }
        }
    }

    async fn settle_in_core(&self, settlements: &[Settlement]) -> Answer {
        let runs: BTreeSet<_> = settlements.iter().map(|settlement| settlement.claim.run).collect();
        let plans = settlements.iter().filter_map(|settlement| match &settlement.outcome {
            TaskOutcome::Waiting(WaitFor::Children(plan)) => Some(plan.definition),
            _ => None,
        });
        let read_set = ReadSet { runs, graphs: plans.collect(), ..ReadSet::default() };
        self.decide(read_set, |in_flight, now, out| {
            settlements.iter().map(|settlement| in_flight.settle(settlement.clone(), now, out)).collect()
        })
        .await
    }
}

impl SettlementBatcher {
    /// Removes the waiting callers whose runs are on this graph, in order of arrival; only one if the graph is unknown.
    fn take(&self, definition: Option<Hash>) -> Vec<Caller> {
        let mut waiting = self.waiting.lock();
        let (mut taken, mut left, mut count) = (Vec::new(), Vec::new(), 0);
        for caller in waiting.drain(..) {
            let alike = caller.definition == definition && (definition.is_some() || taken.is_empty());
            if alike && (taken.is_empty() || count + caller.settlements.len() <= AT_ONCE) {
                count += caller.settlements.len();
                taken.push(caller);
            } else {
                left.push(caller);
            }
        }
        *waiting = left;
        taken
    }
}
