//! Accepts runs: the archive gets a run first, then Redis.

use std::time::Duration;

use switchyard_core::in_flight::{Acceptance, InFlight, NewRun};
use switchyard_core::run::{Accepted, Event, Refusal};
use switchyard_core::{Hash, RunId, Timestamp};
use switchyard_store::StoreError;
use tokio::time::Instant;

use crate::scripts;
use crate::slow_path::ReadSet;
use crate::store::RedisStore;

/// How long an idempotency key is reserved for a run that is being accepted.
const RESERVATION: Duration = Duration::from_secs(60);
/// How often, and at which interval, a repeated submission looks for the first one in the archive.
const LOOKS: u32 = 100;
const LOOK_EVERY: Duration = Duration::from_millis(20);

enum Reserved {
    At(Timestamp),
    Taken { run: RunId, body: Hash },
}

impl RedisStore {
    /// Accepts a run. Acceptance does not depend on other runs, so it is archived before Redis has it. If Redis fails
    /// in between, the recovery pass finds the run in the archive.
    pub(crate) async fn take_in(&self, new: NewRun) -> Result<Acceptance, StoreError> {
        let definition = new.accepted.definition;
        let found = self.with_retry(|| self.graphs.find(definition)).await;
        let graph = found.map_err(StoreError::not_applied)?;
        let graph = graph.ok_or(Refusal::UnknownDefinition(definition))?;
        // If the answer to a first attempt was lost, the retry renews the reservation.
        let reserved = self.with_retry(|| self.reserve(&new)).await;
        // Even if the reservation was made, no run was accepted.
        let now = match reserved.map_err(StoreError::not_applied)? {
            Reserved::At(now) => now,
            Reserved::Taken { run, body } => return self.existing(&new.accepted, run, body).await,
        };
        let mut alone = InFlight::part(self.limits, 0);
        alone.learn(graph.ir.clone());
        let mut events = Vec::new();
        alone.accept(new.clone(), now, &mut events)?;
        events.truncate(1);
        match self.archived_first(events).await {
            Ok(()) => {}
            // The archive may have the run: its key stays reserved until the reservation expires.
            Err(error @ StoreError::OutcomeUnknown(_)) => return Err(error),
            Err(error) => {
                self.give_up_reservation(&new).await;
                return Err(error);
            }
        }
        let id = new.id;
        match self.with_retry(|| self.put_in_place(&new, now)).await {
            // The run is archived, so it will run: the recovery pass finds it once Redis is back. If this were an
            // error, a caller that retries would start a second run.
            Err(why) if why.is_outage() => {
                tracing::warn!(run = %id, %why, "accepted; Redis will be given it later");
                Ok(Acceptance::New(id))
            }
            answer => answer,
        }
    }

    async fn archived_first(&self, events: Vec<Event>) -> Result<(), StoreError> {
        let begun = Instant::now();
        let answer = self.archive.append(events.clone()).await;
        self.note_archive(&answer);
        answer?;
        // The event does not go through the outbox, so no shipper reports it.
        self.observe.archived(&events, begun.elapsed());
        Ok(())
    }

    async fn put_in_place(&self, new: &NewRun, now: Timestamp) -> Result<Acceptance, StoreError> {
        let id = new.id;
        let read_set = ReadSet {
            concurrency_keys: new
                .accepted
                .concurrency
                .iter()
                .map(|concurrency| concurrency.key.clone())
                .collect(),
            graphs: [new.accepted.definition].into(),
            archived: Some(id),
            absent_at: new.accepted.concurrency.is_none().then_some(now),
            ..ReadSet::run(id)
        };
        let accept =
            |in_flight: &mut InFlight, _, out: &mut Vec<Event>| in_flight.accept(new.clone(), now, out);
        match self.decide(read_set, accept).await? {
            // The recovery pass has already written the run to Redis.
            Err(Refusal::RunExists(_)) => Ok(Acceptance::New(id)),
            answer => Ok(answer?),
        }
    }

    async fn reserve(&self, new: &NewRun) -> Result<Reserved, StoreError> {
        let key = new.accepted.idempotency.as_ref();
        let mut keys = vec![self.keys.run(new.id), self.keys.probe()];
        keys.extend(key.map(|key| self.keys.idempotency(&key.key)));
        let args = [
            self.time(),
            new.id.to_string(),
            key.map_or_else(String::new, |key| key.body.to_string()),
            RESERVATION.as_millis().to_string(),
        ];
        let answer: Vec<String> = self.client.run(&scripts::RESERVE, &keys, &args).await?;
        let odd = || StoreError::Corrupt(format!("Redis answered a reservation with {answer:?}"));
        match &answer[..] {
            [now, new] if new == "new" => {
                Ok(Reserved::At(Timestamp::from_millis(now.parse().map_err(|_| odd())?)))
            }
            [_, exists] if exists == "exists" => Err(Refusal::RunExists(new.id).into()),
            [_, run, body] => Ok(Reserved::Taken {
                run: run.parse().map_err(|_| odd())?,
                body: body.parse().map_err(|_| odd())?,
            }),
            _ => Err(odd()),
        }
    }

    /// Answers a repeated submission as soon as the first one is archived.
    async fn existing(&self, accepted: &Accepted, run: RunId, body: Hash) -> Result<Acceptance, StoreError> {
        if let Some(wanted) = accepted.idempotency.as_ref().filter(|wanted| wanted.body != body) {
            return Err(Refusal::KeyReused { key: wanted.key.clone(), run }.into());
        }
        for _ in 0..LOOKS {
            if self.archive.run(run).await?.is_some() {
                return Ok(Acceptance::Existing(run));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(StoreError::unavailable("a run with this idempotency key is being accepted; try again"))
    }

    async fn give_up_reservation(&self, new: &NewRun) {
        if let Some(key) = &new.accepted.idempotency {
            // If this fails too, the reservation expires.
            let _ = self.client.query::<()>(redis::cmd("DEL").arg(self.keys.idempotency(&key.key))).await;
        }
    }
}
