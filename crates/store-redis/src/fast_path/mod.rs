//! The fast path: one script call settles, releases and claims.

pub(crate) mod batch;
mod route;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;
use switchyard_core::Hash;
use switchyard_core::in_flight::Want;
use switchyard_core::ir::NodeIx;
use switchyard_core::run::{ClaimRef, Settled, Settlement, SkipReason, Task, TaskOutcome};
use switchyard_store::StoreError;

use crate::fast_path::batch::StepRequest;
use crate::fast_path::route::SLOW;
use crate::graphs::{Ending, Graph, GraphOfRun};
use crate::record::json;
use crate::scripts;
use crate::store::RedisStore;
use crate::task::{Reply, unreadable};
use crate::timers::in_ms;

/// The most settlements, and the most claims, of one call. All their events go into one entry of the outbox.
pub(crate) const AT_ONCE: usize = 200;
/// The script's answer to a settlement of a large run that a process has locked for a decision.
const LOCKED: char = 'l';
/// How long to wait before settling in a locked run again.
const LOCKED_FOR: Duration = Duration::from_millis(5);

/// One caller's part of the answer to a call.
#[derive(Debug, Default)]
pub(crate) struct StepAnswer {
    /// An answer for each settlement, up to the first that was not carried out.
    pub(crate) letters: String,
    pub(crate) tasks: Vec<Task>,
    /// The call stopped early: there may be tasks that it did not look at.
    pub(crate) looked_enough: bool,
}

impl RedisStore {
    /// Settles in order, then claims. Settlements for the slow path keep their place in the order.
    pub(crate) async fn settle_and_claim(
        &self,
        settlements: Vec<Settlement>,
        want: &Want,
    ) -> Result<(Vec<Settled>, Vec<Task>), StoreError> {
        let mut answers = Vec::with_capacity(settlements.len());
        let mut open: VecDeque<Settlement> = settlements.into();
        loop {
            let slow = open.iter().take_while(|settlement| !self.fits_script(settlement)).count();
            if slow > 0 {
                let slow: Vec<Settlement> = open.drain(..slow).collect();
                answers.extend(self.settle_on_slow_path(slow).await?);
                continue;
            }
            let fitting = self.fit_one_call(&open);
            let last = fitting == open.len();
            let max = if last { want.max.min(AT_ONCE) } else { 0 };
            let settlements: Vec<Settlement> = open.iter().take(fitting).cloned().collect();
            let edges = settlements.iter().filter_map(|settlement| self.edges(settlement)).sum();
            let request = StepRequest::new(settlements, want, max, edges);
            let StepAnswer { letters, tasks, looked_enough } = self.batched_step(request).await?;
            let (slow, locked) = (letters.ends_with(SLOW), letters.ends_with(LOCKED));
            let settled = letters.trim_end_matches([SLOW, LOCKED]);
            for letter in settled.chars() {
                answers.push(read_answer(letter)?);
            }
            open.drain(..settled.len());
            if slow {
                let alike = self.alike(&open);
                let next: Vec<Settlement> = open.drain(..alike).collect();
                answers.extend(self.settle_on_slow_path(next).await?);
            } else if locked {
                tokio::time::sleep(LOCKED_FOR).await;
            } else if last && !(looked_enough && tasks.is_empty() && max > 0) {
                return Ok((answers, tasks));
            }
        }
    }

    /// The graph of a claim's run, its node, and the priority that the run was submitted with.
    fn graph_of_claim(&self, claim: &ClaimRef) -> Option<(Arc<Graph>, NodeIx, Option<u8>)> {
        let GraphOfRun { definition, priority } = self.graphs.of_run(claim.run)?;
        let graph = self.graphs.cached(definition)?;
        let ix = graph.ir.find(&claim.node)?;
        Some((graph, ix, priority))
    }

    /// Makes one call for all requests. Those that claim want tasks of the same queues, for the same worker.
    pub(crate) async fn run_step(
        &self,
        requests: &[StepRequest],
    ) -> Result<Vec<Result<StepAnswer, StoreError>>, StoreError> {
        let Some((call, may_end_a_run)) = self.step_call(requests)? else {
            return Ok(requests.iter().map(|_| Ok(StepAnswer::default())).collect());
        };
        let (letters, found, looked_enough): (String, Vec<Vec<redis::Value>>, u8) =
            self.client.call(&scripts::STEP, &call).await?;
        if may_end_a_run {
            self.shipper.hurry();
        }
        let mut tasks = VecDeque::with_capacity(found.len());
        for task in found {
            tasks.push_back(self.read_task(Reply::new(task)).await);
        }
        // A caller with a settlement for the slow path, or of a locked run, claims in a later call.
        let outcome = |(letters, request): (&str, &StepRequest)| {
            let max = if letters.ends_with([SLOW, LOCKED]) { 0 } else { request.max.min(tasks.len()) };
            let tasks = tasks.drain(..max).collect::<Result<_, _>>()?;
            Ok(StepAnswer { letters: letters.to_owned(), tasks, looked_enough: looked_enough == 1 })
        };
        Ok(letters.split(' ').zip(requests).map(outcome).collect())
    }

    /// The call, unless there is nothing to do, and whether it settles a node without dependents.
    fn step_call(&self, requests: &[StepRequest]) -> Result<Option<(Cmd, bool)>, StoreError> {
        // The queues are those of a request that claims: one that claims nothing may name no queues.
        let wants = requests.iter().max_by_key(|request| request.max).filter(|request| request.max > 0);
        let wants = wants.or_else(|| requests.iter().find(|request| !request.settlements.is_empty()));
        let Some(StepRequest { want, .. }) = wants else { return Ok(None) };
        let mut call = redis::cmd("EVALSHA");
        call.arg(scripts::STEP.hash()).arg(4);
        call.arg(self.keys.outbox()).arg(self.keys.leases()).arg(self.keys.queued()).arg(self.keys.wake());
        call.arg(self.keys.begin()).arg(self.time()).arg(&*want.worker).arg(json(&want.worker)?);
        call.arg(in_ms(want.lease)).arg(want.queues.len());
        for queue in want.queues.iter() {
            call.arg(&**queue);
        }
        let (hints, has_last) = self.write_hints(requests, &mut call)?;
        let mut hints = hints.into_iter();
        call.arg(requests.len());
        for request in requests {
            call.arg(request.max).arg(request.settlements.len());
            for settlement in &request.settlements {
                write_settlement(settlement, hints.next().unwrap_or(0), &mut call)?;
            }
        }
        Ok(Some((call, has_last)))
    }

    /// Writes the hints that the script needs about the settled nodes, each once. Returns the number of the hints for
    /// each settlement, and whether one of the nodes has no dependents.
    fn write_hints(
        &self,
        requests: &[StepRequest],
        call: &mut Cmd,
    ) -> Result<(Vec<usize>, bool), StoreError> {
        let mut known: HashMap<(Hash, NodeIx, Ending, Option<u8>), usize> = HashMap::new();
        let mut hints: Vec<(Arc<Graph>, NodeIx, Ending, Option<u8>)> = Vec::new();
        let mut numbers = Vec::new();
        for settlement in requests.iter().flat_map(|request| &request.settlements) {
            let found = self.graph_of_claim(&settlement.claim);
            let (graph, ix, priority) =
                found.ok_or_else(|| StoreError::unavailable("a graph was forgotten; try again"))?;
            let ending = ending(&settlement.outcome);
            let number = known.entry((graph.ir.hash, ix, ending, priority)).or_insert_with(|| {
                hints.push((graph, ix, ending, priority));
                hints.len()
            });
            numbers.push(*number);
        }
        let has_last = hints.iter().any(|(graph, ix, ..)| graph.ir.node(*ix).dependents.is_empty());
        call.arg(hints.len());
        for (graph, ix, ending, priority) in hints {
            graph.write_hints(ix, ending, priority, call);
        }
        Ok((numbers, has_last))
    }
}

fn ending(outcome: &TaskOutcome) -> Ending {
    match outcome {
        TaskOutcome::Succeeded(_) => Ending::Succeeded,
        TaskOutcome::Skipped(_) => Ending::Skipped,
        _ => Ending::HandedBack,
    }
}

/// Writes a settlement in the form that `step.lua` reads.
fn write_settlement(settlement: &Settlement, index: usize, call: &mut Cmd) -> Result<(), StoreError> {
    let ClaimRef { run, claim, .. } = &settlement.claim;
    call.arg(run.to_string()).arg(index).arg(*claim);
    match &settlement.outcome {
        TaskOutcome::Succeeded(output) => call.arg("S").arg(json(output)?),
        TaskOutcome::Skipped(SkipReason::Condition) => call.arg("K").arg("condition"),
        TaskOutcome::Skipped(SkipReason::NoNeedFired) => call.arg("K").arg("no_need_fired"),
        _ => call.arg("H").arg(""),
    };
    Ok(())
}

fn read_answer(letter: char) -> Result<Settled, StoreError> {
    match letter {
        'a' => Ok(Settled::Applied),
        'd' => Ok(Settled::Duplicate),
        's' => Ok(Settled::Stale),
        other => Err(unreadable(other)),
    }
}
