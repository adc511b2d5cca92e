//! Rebuilds runs from the archive if Redis has lost them, or contradicts the archive.

mod missed_ends;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use switchyard_core::ir::Ir;
use switchyard_core::run::{Event, EventKind, Run};
use switchyard_core::{Hash, RunId};
use switchyard_store::{StoreError, Unfinished};

use crate::outbox::Incarnations;
use crate::scripts;
use crate::slow_path::{ReadSet, planned};
use crate::store::RedisStore;

/// How many runs one round trip reads.
const AT_ONCE: usize = 1_000;
/// How many runs one decision rebuilds, and about how many nodes they may have together.
const TAKEN_UP_AT_ONCE: usize = 200;
const NODES_AT_ONCE: usize = 2_000;
/// How long forgotten incarnations are remembered: long enough that their last entry has left the outbox.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);
const PAGE: usize = 1_000;

impl RedisStore {
    /// Removes runs that Redis still has although their end is archived, because Redis went back to an earlier state.
    /// Such a run would hold its concurrency key, and ask for approvals, until it is removed.
    pub(crate) async fn forget_outlived(&self, unfinished: &[Unfinished]) -> Result<(), StoreError> {
        let unfinished: HashSet<RunId> = unfinished.iter().map(|unfinished| unfinished.run).collect();
        let mut outlived = Incarnations::new();
        let mut cursor = 0;
        loop {
            let (next, mut others) = self.scan_runs(cursor, AT_ONCE).await?;
            others.retain(|run| !unfinished.contains(run));
            outlived.extend(self.outlived_among(&others).await?);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        if outlived.is_empty() {
            return Ok(());
        }
        tracing::warn!(runs = outlived.len(), "runs had ended that Redis still held; they are let go");
        self.forget(&outlived).await
    }

    /// One page of the runs that Redis has, and the next cursor; 0 at the end.
    pub(crate) async fn scan_runs(&self, cursor: u64, about: usize) -> Result<(u64, Vec<RunId>), StoreError> {
        let mut scan = redis::cmd("SSCAN");
        scan.arg(self.keys.runs()).arg(cursor).arg("COUNT").arg(about);
        let (next, ids): (u64, Vec<String>) = self.client.query(&scan).await?;
        Ok((next, ids.iter().filter_map(|id| id.parse().ok()).collect()))
    }

    /// The runs that are behind their archived end, with their incarnations. A run that is retried is ahead of it.
    async fn outlived_among(&self, runs: &[RunId]) -> Result<Vec<(RunId, u64)>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let mut ask = redis::pipe();
        for run in runs {
            ask.hmget(self.keys.run(*run), &["seq", "life"]);
        }
        let here: Vec<(Option<u64>, Option<u64>)> = self.client.query_all(&ask).await?;
        let mut outlived = Vec::new();
        for (run, here) in runs.iter().zip(here) {
            let (Some(seq), Some(incarnation)) = here else { continue };
            let archived = self.archive.run(*run).await?;
            if archived.is_some_and(|record| record.status.is_terminal() && record.last_seq > seq) {
                outlived.push((*run, incarnation));
            }
        }
        Ok(outlived)
    }

    pub(crate) async fn find_lacking(&self, runs: &[Unfinished]) -> Result<Vec<RunId>, StoreError> {
        let mut lacking = Vec::new();
        for runs in runs.chunks(AT_ONCE) {
            let mut ask = redis::pipe();
            for unfinished in runs {
                ask.hget(self.keys.run(unfinished.run), "seq");
            }
            let known: Vec<Option<u64>> = self.client.query_all(&ask).await?;
            let behind =
                runs.iter().zip(known).filter(|(unfinished, seq)| seq.unwrap_or(0) < unfinished.last_seq);
            lacking.extend(behind.map(|(unfinished, _)| unfinished.run));
        }
        Ok(lacking)
    }

    /// Writes rebuilt runs to Redis, parents before their children: a child that ends while it is restored has to tell
    /// its parent.
    pub(crate) async fn take_up(&self, mut runs: Vec<Run>) -> Result<(), StoreError> {
        if runs.len() <= TAKEN_UP_AT_ONCE
            && runs.iter().map(|run| run.nodes.len()).sum::<usize>() <= NODES_AT_ONCE
        {
            return self.take_up_together(runs).await;
        }
        runs.sort_by_key(Run::depth);
        let (mut together, mut nodes) = (Vec::new(), 0);
        for run in runs {
            nodes += run.nodes.len();
            together.push(run);
            if together.len() >= TAKEN_UP_AT_ONCE || nodes >= NODES_AT_ONCE {
                self.take_up_together(std::mem::take(&mut together)).await?;
                nodes = 0;
            }
        }
        if together.is_empty() { Ok(()) } else { self.take_up_together(together).await }
    }

    async fn take_up_together(&self, runs: Vec<Run>) -> Result<(), StoreError> {
        let mut newest = Vec::with_capacity(runs.len());
        for run in runs {
            // The archive may have got more events of the run since its history was read.
            let archived = self.archive.run(run.id).await?.map_or(0, |record| record.last_seq);
            if archived <= run.seq {
                newest.push(run);
            }
        }
        let mut read_set = ReadSet::default();
        for run in &newest {
            read_set.runs.insert(run.id);
            read_set.taken_up.insert(run.id, run.seq);
            read_set
                .concurrency_keys
                .extend(run.accepted.concurrency.iter().map(|concurrency| concurrency.key.clone()));
            read_set.graphs.extend(planned(run));
        }
        if newest.is_empty() {
            return Ok(());
        }
        self.decide(read_set, |in_flight, now, out| in_flight.restore(newest.clone(), now, out)).await
    }

    /// Removes incarnations of runs from Redis, and rebuilds the runs that have not ended from the archive.
    pub(crate) async fn forget(&self, incarnations: &Incarnations) -> Result<(), StoreError> {
        let keys = [self.keys.forgotten(), self.keys.runs(), self.keys.leases(), self.keys.timers()];
        let mut args = vec![
            self.keys.begin().to_owned(),
            FORGOTTEN.as_millis().to_string(),
            incarnations.len().to_string(),
        ];
        for (run, incarnation) in incarnations {
            args.extend([run.to_string(), incarnation.to_string()]);
        }
        let concurrency_keys: Vec<String> = self.client.run(&scripts::FORGET, &keys, &args).await?;
        let mut rebuilt = Vec::new();
        for run in incarnations.iter().map(|(run, _)| *run).collect::<HashSet<_>>() {
            match self.rebuild(run).await {
                Ok(run) => rebuilt.extend(run),
                // This run cannot continue, which every recovery pass logs; the others can.
                Err(error @ StoreError::Corrupt(_)) => {
                    tracing::error!(%run, %error, "a run cannot be rebuilt from the archive");
                }
                Err(error) => return Err(error),
            }
        }
        self.take_up(rebuilt).await?;
        let concurrency_keys = concurrency_keys.into_iter().map(Into::into).collect();
        let read_set = ReadSet { concurrency_keys, ..ReadSet::default() };
        self.decide(read_set, |in_flight, now, out| in_flight.restore(Vec::new(), now, out)).await
    }

    /// Rebuilds a run from its history. `None` if the run has ended, or if a graph is neither cached nor in Redis: then
    /// the recovery pass rebuilds it.
    async fn rebuild(&self, run: RunId) -> Result<Option<Run>, StoreError> {
        let mut events: Vec<Event> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event.seq);
            let page = self.archive.events(run, after, PAGE).await?;
            if page.is_empty() {
                break;
            }
            events.extend(page);
        }
        let mut graphs: HashMap<Hash, Arc<Ir>> = HashMap::new();
        for event in &events {
            let definition = match &event.kind {
                EventKind::RunAccepted(accepted) => accepted.definition,
                EventKind::RunPatched(patched) => patched.definition,
                _ => continue,
            };
            let Some(graph) = self.graphs.find(definition).await? else { return Ok(None) };
            graphs.insert(definition, graph.ir.clone());
        }
        if events.is_empty() {
            return Ok(None);
        }
        let replayed = Run::replay(&events, &|hash| graphs.get(&hash).cloned());
        let run = replayed.map_err(|damaged| StoreError::Corrupt(damaged.to_string()))?;
        Ok(Some(run).filter(|run| !run.is_ended()))
    }
}
