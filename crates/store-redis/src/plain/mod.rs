//! Plain workers: programs that read the streams of tasks and push signals, without any Switchyard code.

mod lost;
mod queues;
mod signals;

use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::in_flight::{InFlight, Taker, band};
use switchyard_core::ir::Role;
use switchyard_core::run::{ClaimRef, NodeState, Settled, Settlement, TaskOutcome};
use switchyard_store::StoreError;
use switchyard_store::plain::{About, Found, Offer, PlainWorkers};

pub(crate) use lost::TAKER;
pub(crate) use signals::SignalMover;

use crate::keys::GROUP;
use crate::record::Stored;
use crate::slow_path::{ReadSet, Words};
use crate::store::RedisStore;

/// How long Redis keeps the answer to a worker that asked for a task.
const ANSWER_KEPT: Duration = Duration::from_secs(60);

fn words<const N: usize>(words: [&str; N]) -> Words {
    words.map(str::to_owned).to_vec()
}

impl RedisStore {
    /// The command that removes a signal, written together with its settlement.
    fn done_with(&self, signal: &str) -> Words {
        words(["LREM", &self.keys.processing(&self.name), "1", signal])
    }

    /// The condition that no other process has taken over the signals of this one.
    fn while_ours(&self) -> Vec<[String; 3]> {
        vec![[self.keys.movers(), self.name.clone(), self.signal_mover.mark()]]
    }

    fn answering(&self, about: &About, answer: &str) -> Vec<Words> {
        let Some(delivery) = &about.delivery else { return Vec::new() };
        let list = self.keys.plain_task(about.run, &about.node, delivery);
        let kept = ANSWER_KEPT.as_millis().to_string();
        vec![words(["RPUSH", &list, answer]), words(["PEXPIRE", &list, &kept])]
    }

    /// The task that a claim of this node would give, and the node's stream; `None` if it cannot be claimed.
    fn offer(&self, stored: &Stored, about: &About) -> Option<(Offer, String)> {
        let run = &stored.stored_run.run;
        let ix = run.ir.find(&about.node)?;
        let stream = self.keys.tasks(&run.ir.node(ix).queue, band(run.priority(ix)));
        let mut in_flight = InFlight::part(self.limits, stored.stored_run.generation);
        in_flight.load(stored.stored_run.clone());
        let by = Taker { worker: &about.worker, lease: None };
        let task = in_flight.claim_node(run.id, &about.node, &by, run.accepted_at, &mut Vec::new())?;
        Some((Offer { task, priority: run.accepted.priority, seq: run.seq }, stream))
    }

    /// Whether the stream still has a delivery of this node: it was not settled or taken back.
    async fn lies_in(&self, stream: &str, about: &About) -> Result<bool, StoreError> {
        let Some(delivery) = &about.delivery else { return Ok(true) };
        let look = redis::cmd("XRANGE").arg(stream).arg(delivery).arg(delivery).to_owned();
        let found: Vec<(String, Vec<(String, String)>)> = self.client.query(&look).await?;
        let says = |fields: &[(String, String)], name: &str, value: &str| {
            fields.iter().any(|(field, said)| field == name && said == value)
        };
        Ok(found.first().is_some_and(|(_, fields)| {
            says(fields, "run_id", &about.run.to_string()) && says(fields, "node_id", &about.node)
        }))
    }

    /// Claims an offered task and, if there is an outcome, settles it in the same decision. Whether the offer was still
    /// valid.
    async fn take_offer(
        &self,
        read_set: ReadSet,
        about: &About,
        offer: &Offer,
        lease: Option<Duration>,
        outcome: Option<&TaskOutcome>,
    ) -> Result<bool, StoreError> {
        self.decide(read_set, |in_flight, now, out| {
            if in_flight.run(about.run).is_none_or(|run| run.seq != offer.seq) {
                return false;
            }
            let by = Taker { worker: &about.worker, lease };
            let Some(task) = in_flight.claim_node(about.run, &about.node, &by, now, out) else {
                return false;
            };
            if let Some(outcome) = outcome {
                let claim = ClaimRef { run: task.run, node: task.node, claim: task.claim };
                in_flight.settle(Settlement { claim, outcome: outcome.clone() }, now, out);
            }
            true
        })
        .await
    }
}

#[async_trait]
impl PlainWorkers for RedisStore {
    async fn take_signals(&self) -> Result<Vec<String>, StoreError> {
        self.move_signals().await
    }

    async fn signals_ready(&self) {
        self.wait_for_signals().await;
    }

    async fn find_node(&self, about: &About) -> Result<Found, StoreError> {
        let Some(found) = self.read_run(about.run).await? else { return Ok(Found::NotHere) };
        if found.record.has_ended() {
            return Ok(Found::Passed);
        }
        let stored = self.stored(found).await?;
        let run = &stored.stored_run.run;
        let Some(ix) = run.ir.find(&about.node).filter(|ix| run.ir.node(*ix).role != Role::Output) else {
            return Ok(Found::UnknownNode);
        };
        if run.node(ix).state == NodeState::Running {
            let delivery = stored.entries.get(&ix).cloned();
            return Ok(Found::Held { claim: run.node(ix).claim, delivery });
        }
        let Some((offer, stream)) = self.offer(&stored, about) else { return Ok(Found::Passed) };
        // Checked after the run was read: removing the delivery later changes the run, which makes the offer invalid.
        Ok(match self.lies_in(&stream, about).await? {
            true => Found::Ready(Box::new(offer)),
            false => Found::Passed,
        })
    }

    async fn claim_offer(
        &self,
        signal: &str,
        about: &About,
        offer: &Offer,
        lease: Duration,
        answer: &str,
    ) -> Result<bool, StoreError> {
        let mut with = self.answering(about, answer);
        with.push(self.done_with(signal));
        let entries = about.delivery.iter().map(|entry| (about.node.clone(), entry.clone())).collect();
        let read_set = ReadSet { with, entries, given: self.while_ours(), ..ReadSet::run(about.run) };
        self.take_offer(read_set, about, offer, Some(lease), None).await
    }

    async fn settle_offer(
        &self,
        signal: &str,
        about: &About,
        offer: &Offer,
        outcome: &TaskOutcome,
    ) -> Result<bool, StoreError> {
        let mut with = vec![self.done_with(signal)];
        if let Some(entry) = &about.delivery {
            let graph = self.graphs.get(offer.task.definition).await?;
            let stream = graph.hints_of(offer.task.ix).stream(offer.priority);
            with.push(words(["XACK", stream, GROUP, entry]));
            with.push(words(["XDEL", stream, entry]));
        }
        let read_set = ReadSet { with, given: self.while_ours(), ..ReadSet::run(about.run) };
        self.take_offer(read_set, about, offer, None, Some(outcome)).await
    }

    async fn settle_claim(
        &self,
        signal: &str,
        claim: ClaimRef,
        outcome: TaskOutcome,
    ) -> Result<Settled, StoreError> {
        let with = vec![self.done_with(signal)];
        let read_set = ReadSet { with, given: self.while_ours(), ..ReadSet::run(claim.run) };
        let settlement = Settlement { claim, outcome };
        self.decide(read_set, |in_flight, now, out| in_flight.settle(settlement.clone(), now, out)).await
    }

    async fn answer(&self, about: &About, answer: &str) -> Result<(), StoreError> {
        let mut pipe = redis::pipe();
        for words in self.answering(about, answer) {
            pipe.cmd(&words[0]).arg(&words[1..]).ignore();
        }
        self.client.query_all(&pipe).await
    }

    async fn drop_signal(&self, signal: &str) -> Result<(), StoreError> {
        let words = self.done_with(signal);
        self.client.query::<u32>(redis::cmd(&words[0]).arg(&words[1..])).await.map(drop)
    }

    async fn take_back(&self, silence: Duration) -> Result<usize, StoreError> {
        self.take_back_lost(silence).await
    }
}
