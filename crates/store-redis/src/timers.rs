//! Fires due timers, reclaims claims whose lease ran out, and extends leases on heartbeats.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use switchyard_core::in_flight::{ClaimStatus, InFlight};
use switchyard_core::run::{ClaimRef, Event};
use switchyard_core::{RunId, Timestamp};
use switchyard_store::StoreError;

use crate::scripts;
use crate::slow_path::{Due, ReadSet};
use crate::store::RedisStore;

/// How many due members one call reads.
const AT_ONCE: usize = 200;

impl RedisStore {
    /// Fires due timers, each once. Returns how many fired, and when to call again: now if children are left to cancel,
    /// else when the next timer is due.
    pub(crate) async fn fire_due(&self) -> Result<(usize, Option<Timestamp>), StoreError> {
        let (mut fired, mut seen) = (0, HashSet::new());
        let next = loop {
            let (read_set, next) = self.due(&self.keys.timers()).await?;
            let Some(read_set) = read_set else { break next };
            let members = read_set.due.iter().flat_map(|due| due.members.iter().cloned());
            if members.filter(|member| seen.insert(member.clone())).count() == 0 {
                break next;
            }
            fired += self.decide_each(read_set, InFlight::fire_due).await?;
        };
        // One batch of cancellations per pass, so that timers need not wait for all of them.
        match self.cancel_some().await? {
            true => Ok((fired, Some(self.now().await?))),
            false => Ok((fired, next)),
        }
    }

    /// Takes back claims whose lease has run out, and fails attempts that took too long. Returns how many.
    pub(crate) async fn reclaim_due(&self) -> Result<usize, StoreError> {
        self.queue_left().await?;
        let mut reclaimed = 0;
        loop {
            let (read_set, _) = self.due(&self.keys.leases()).await?;
            let Some(read_set) = read_set else { return Ok(reclaimed) };
            reclaimed += self.decide_each(read_set, InFlight::reclaim).await?;
        }
    }

    /// Decides about all runs at once. If that fails although Redis answers, decides about one run after the other, so
    /// that a run that cannot be read does not hold up the others.
    async fn decide_each(
        &self,
        read_set: ReadSet,
        decide: fn(&mut InFlight, Timestamp, &mut Vec<Event>) -> usize,
    ) -> Result<usize, StoreError> {
        let together = self.decide(read_set.clone(), decide).await;
        if together.is_ok() || read_set.runs.len() == 1 {
            return together;
        }
        self.client.query::<()>(&redis::cmd("PING")).await?;
        let (mut done, mut failed) = (0, None);
        for run in &read_set.runs {
            let due = read_set.due.clone().map(|mut due| {
                due.members.retain(|member| run_of(member) == Some(*run));
                due
            });
            match self.decide(ReadSet { due, ..ReadSet::run(*run) }, decide).await {
                Ok(count) => done += count,
                Err(error) => {
                    tracing::error!(%run, %error, "what is due for a run could not be done");
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(done), Err)
    }

    /// The runs with due members in a sorted set, and when the next member is due.
    async fn due(&self, key: &str) -> Result<(Option<ReadSet>, Option<Timestamp>), StoreError> {
        let args = [self.time(), AT_ONCE.to_string()];
        let (now, due, next): (i64, Vec<String>, String) =
            self.client.run(&scripts::DUE, &[key.to_owned()], &args).await?;
        let next = next.parse().ok().map(Timestamp::from_millis);
        // Converted to this machine's clock, by which the caller sleeps: a skewed clock delays nothing.
        let next = next.map(|next| self.here().plus(next.since(Timestamp::from_millis(now))));
        if due.is_empty() {
            return Ok((None, next));
        }
        let runs: BTreeSet<RunId> = due.iter().filter_map(|member| run_of(member)).collect();
        let due = Due { key: key.to_owned(), members: due };
        Ok((Some(ReadSet { runs, due: Some(due), ..ReadSet::default() }), next))
    }

    pub(crate) async fn keep_claims(
        &self,
        claims: &[ClaimRef],
        lease: Option<Duration>,
    ) -> Result<Vec<ClaimStatus>, StoreError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let mut keys = vec![self.keys.leases()];
        let mut args =
            vec![self.keys.begin().to_owned(), self.time(), in_ms(lease), claims.len().to_string()];
        for ClaimRef { run, node, claim } in claims {
            keys.extend([self.keys.run(*run), self.keys.dag(*run)]);
            args.extend([run.to_string(), node.to_string(), claim.to_string()]);
        }
        let answers: Vec<String> = self.client.run(&scripts::HEARTBEAT, &keys, &args).await?;
        let standing = |answer: &String| match &**answer {
            "held" => ClaimStatus::Held,
            "stop" => ClaimStatus::Stop,
            _ => ClaimStatus::Lost,
        };
        Ok(answers.iter().map(standing).collect())
    }
}

/// The run of a member of `wf.timers` or `wf.leases`.
fn run_of(member: &str) -> Option<RunId> {
    member.split(' ').next()?.parse().ok()
}

/// A duration as an argument of a script, in ms; empty for `None`.
pub(crate) fn in_ms(lasts: Option<Duration>) -> String {
    lasts.map_or_else(String::new, |lasts| lasts.as_millis().to_string())
}
