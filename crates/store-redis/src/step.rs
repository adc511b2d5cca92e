//! The hot path: one script call settles, releases and claims.

use std::collections::BTreeSet;

use redis::{FromRedisValue, Value};
use switchyard_core::ir::Role;
use switchyard_core::run::{
    ClaimRef, Reading, Settled, Settlement, SkipReason, Task, TaskOutcome, WaitFor, Waiting,
};
use switchyard_core::yard::Want;
use switchyard_core::{Hash, Payload, Timestamp};
use switchyard_store::StoreError;

use crate::graphs::Graph;
use crate::moments::in_ms;
use crate::rare::Touch;
use crate::record::{json, state_of};
use crate::scripts;
use crate::store::RedisStore;

/// Settlements, and claims, of one call. All their events go into one entry of a stream.
const AT_ONCE: usize = 200;
/// Runs whose graph is remembered.
const REMEMBERED_MAX: usize = 200_000;

impl RedisStore {
    /// Settles in order, then claims. What is not plain is carried out by the core, in its place in the order.
    pub(crate) async fn settle_and_claim(
        &self,
        settlements: Vec<Settlement>,
        want: &Want,
    ) -> Result<(Vec<Settled>, Vec<Task>), StoreError> {
        let mut answers = Vec::with_capacity(settlements.len());
        loop {
            let open = &settlements[answers.len()..];
            let rare = open.iter().take_while(|settlement| !self.is_plain(settlement)).count();
            if rare > 0 {
                answers.extend(self.settle_rarely(&open[..rare]).await?);
                continue;
            }
            let plain = open.iter().take(AT_ONCE).take_while(|settlement| self.is_plain(settlement)).count();
            let max = if plain == open.len() { want.max.min(AT_ONCE) } else { 0 };
            let (mut settled, tasks) = self.run_step(&open[..plain], want, max).await?;
            let left_to_core = settled.last().is_some_and(|answer| answer == "rare");
            if left_to_core {
                settled.pop();
            }
            for answer in settled {
                answers.push(read_answer(&answer)?);
            }
            if left_to_core {
                let next = answers.len();
                answers.extend(self.settle_rarely(&settlements[next..=next]).await?);
            } else if answers.len() == settlements.len() && max == want.max.min(AT_ONCE) {
                return Ok((answers, tasks));
            }
        }
    }

    /// Whether the script can do it, as far as can be seen from here.
    fn is_plain(&self, settlement: &Settlement) -> bool {
        let kind = matches!(
            settlement.outcome,
            TaskOutcome::Succeeded(_)
                | TaskOutcome::Skipped(_)
                | TaskOutcome::HandedBack
                | TaskOutcome::Cancelled
        );
        kind && self.graph_of_claim(&settlement.claim).is_some()
    }

    fn graph_of_claim(&self, claim: &ClaimRef) -> Option<std::sync::Arc<Graph>> {
        let definition = self.on.lock().get(&claim.run).copied()?;
        self.graphs.cached(definition).filter(|graph| graph.ir.find(&claim.node).is_some())
    }

    async fn settle_rarely(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError> {
        let runs: BTreeSet<_> = settlements.iter().map(|settlement| settlement.claim.run).collect();
        let plans = settlements.iter().filter_map(|settlement| match &settlement.outcome {
            TaskOutcome::Waiting(WaitFor::Children(plan)) => Some(plan.definition),
            _ => None,
        });
        let touch = Touch { runs, graphs: plans.collect(), ..Touch::default() };
        self.decide(touch, |yard, now, out| {
            settlements.iter().map(|settlement| yard.settle(settlement.clone(), now, out)).collect()
        })
        .await
    }

    async fn run_step(
        &self,
        settlements: &[Settlement],
        want: &Want,
        max: usize,
    ) -> Result<(Vec<String>, Vec<Task>), StoreError> {
        if settlements.is_empty() && max == 0 {
            return Ok((Vec::new(), Vec::new()));
        }
        let mut keys = vec![self.keys.outbox(), self.keys.leases(), self.keys.queued(), self.keys.wake()];
        let mut args = vec![
            self.keys.begin().to_owned(),
            self.time(),
            want.worker.to_string(),
            json(&want.worker)?,
            max.to_string(),
            in_ms(want.lease),
            settlements.len().to_string(),
        ];
        for settlement in settlements {
            let run = settlement.claim.run;
            keys.extend([self.keys.run(run), self.keys.dag(run), self.keys.context(run)]);
            let graph = self.graph_of_claim(&settlement.claim);
            let graph = graph.ok_or_else(|| StoreError::unavailable("a graph was forgotten; try again"))?;
            push_settlement(&graph, settlement, &mut args)?;
        }
        args.push(want.queues.len().to_string());
        args.extend(want.queues.iter().map(ToString::to_string));
        let (answers, tasks): (Vec<String>, Vec<Vec<Value>>) =
            self.client.run(&scripts::STEP, &keys, &args).await?;
        let mut claimed = Vec::with_capacity(tasks.len());
        for task in tasks {
            claimed.push(self.read_task(task).await?);
        }
        Ok((answers, claimed))
    }

    async fn read_task(&self, fields: Vec<Value>) -> Result<Task, StoreError> {
        let mut fields = Reply(fields.into_iter());
        let run = fields.text()?.parse().map_err(unreadable)?;
        let node = fields.text()?;
        let (claim, attempt) = (fields.next()?, fields.next()?);
        let definition: Hash = format!("sha256:{}", fields.text()?).parse().map_err(unreadable)?;
        let (run_attempt, started_at) = (fields.next()?, fields.next::<i64>()?);
        let (depth, skip, rounds) = (fields.next()?, fields.next::<u8>()? == 1, fields.next()?);
        let queued_at = Timestamp::from_millis(fields.next()?);
        let graph = self.graphs.get(definition).await?;
        self.remember(run, definition);
        let ix = graph.ir.find(&node).ok_or_else(|| unreadable("a node that its graph does not have"))?;
        let input = fields.payload()?;
        let children = match fields.json::<Waiting>()? {
            Some(Waiting::Gathered(children)) => Some(children),
            _ => None,
        };
        let (checkpoint, trace) = (fields.json()?, fields.json()?);
        let mut reads = Vec::new();
        for read in &graph.ir.node(ix).reads {
            let state =
                state_of(&fields.text()?).ok_or_else(|| unreadable("a state that nodes do not have"))?;
            let (output, error) = (fields.payload()?, fields.json()?);
            reads.push(Reading { node: graph.ir.node(*read).id.clone(), state, output, error });
        }
        Ok(Task {
            run,
            node: graph.ir.node(ix).id.clone(),
            ix,
            claim,
            attempt,
            definition,
            workflow: graph.ir.name.clone(),
            queue: graph.ir.node(ix).queue.clone(),
            queued_at,
            trace,
            checkpoint,
            run_attempt,
            started_at: Timestamp::from_millis(started_at),
            depth,
            skip,
            input,
            reads,
            rounds,
            children,
        })
    }

    fn remember(&self, run: switchyard_core::RunId, definition: Hash) {
        let mut on = self.on.lock();
        if on.len() >= REMEMBERED_MAX {
            on.clear();
        }
        on.insert(run, definition);
    }
}

/// As `includes/settle.lua` reads it.
fn push_settlement(graph: &Graph, settlement: &Settlement, args: &mut Vec<String>) -> Result<(), StoreError> {
    let ClaimRef { run, node, claim } = &settlement.claim;
    let ix =
        graph.ir.find(node).ok_or_else(|| StoreError::unavailable("a graph was forgotten; try again"))?;
    let place = graph.place(ix);
    let (kind, value) = match &settlement.outcome {
        TaskOutcome::Succeeded(output) => ("S", json(output)?),
        TaskOutcome::Skipped(SkipReason::Condition) => ("K", "condition".to_owned()),
        TaskOutcome::Skipped(SkipReason::NoNeedFired) => ("K", "no_need_fired".to_owned()),
        _ => ("H", String::new()),
    };
    args.extend([run.to_string(), node.to_string(), claim.to_string(), graph.ir.hash.hex(), kind.to_owned()]);
    args.extend([place.name.clone(), value, place.stream.clone(), place.reads.clone(), place.needs.clone()]);
    args.push(graph.result.to_string());
    match graph.ir.output.filter(|_| graph.ir.node(ix).role == Role::Step) {
        Some(last) => {
            let place = graph.place(last);
            args.extend([graph.ir.node(last).id.to_string(), place.stream.clone()]);
            args.extend([place.reads.clone(), place.needs.clone()]);
        }
        None => args.extend(std::iter::repeat_n(String::new(), 4)),
    }
    if kind == "H" {
        args.push("0".to_owned());
    } else {
        graph.push_edges(ix, kind == "S", args);
    }
    Ok(())
}

fn read_answer(answer: &str) -> Result<Settled, StoreError> {
    match answer {
        "applied" => Ok(Settled::Applied),
        "duplicate" => Ok(Settled::Duplicate),
        "stale" => Ok(Settled::Stale),
        other => Err(unreadable(other)),
    }
}

fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("Redis answered something else than the script says: {error}"))
}

/// The fields of an answer, in order.
struct Reply(std::vec::IntoIter<Value>);

impl Reply {
    fn next<T: FromRedisValue>(&mut self) -> Result<T, StoreError> {
        redis::from_redis_value(self.0.next().unwrap_or(Value::Nil)).map_err(unreadable)
    }

    fn text(&mut self) -> Result<String, StoreError> {
        self.next()
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.next()?;
        text.map(|text| serde_json::from_str(&text).map_err(unreadable)).transpose()
    }

    fn payload(&mut self) -> Result<Payload, StoreError> {
        Ok(self.json()?.unwrap_or_default())
    }
}
