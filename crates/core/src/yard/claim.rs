//! Handing out tokens, and taking settlements.

use std::ops::Bound;
use std::sync::Arc;

use super::queue::{BANDS, Token};
use super::*;
use crate::run::{ClaimRef, Progress, Refusal, Settled, Settlement, Task};

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Want {
    pub worker: Arc<str>,
    /// Names of queues; one that ends in `*` stands for all that begin with what is before it.
    pub queues: Arc<[Arc<str>]>,
    pub max: usize,
    /// How long a claim lasts without a heartbeat. Without one it lasts as long as the process.
    pub lease: Option<Duration>,
}

impl Want {
    /// Nothing: a call that only settles.
    pub fn nothing(worker: Arc<str>) -> Self {
        Self { worker, queues: [].into(), max: 0, lease: None }
    }

    /// Whether tokens of this queue are wanted.
    pub fn takes(&self, queue: &str) -> bool {
        takes(&self.queues, queue)
    }
}

/// Whether one of these names, or patterns, is that of the queue.
pub fn takes(queues: &[Arc<str>], queue: &str) -> bool {
    queues.iter().any(|name| match name.strip_suffix('*') {
        Some(prefix) => queue.starts_with(prefix),
        None => **name == *queue,
    })
}

impl Yard {
    pub fn settle(&mut self, settlement: Settlement, now: Timestamp, out: &mut Vec<Event>) -> Settled {
        let run = settlement.claim.run;
        if let Some(ix) = self.run(run).and_then(|run| run.ir.find(&settlement.claim.node)) {
            self.drop_lease(run, ix, settlement.claim.claim);
        }
        // A run that is not here has ended: whatever is said about it comes too late.
        self.act(run, now, out, |run, changes| run.settle(settlement, now, changes)).unwrap_or(Settled::Stale)
    }

    /// Records what the holder of a claim says about it. The lease is left as it is.
    pub fn progress(
        &mut self,
        claim: &ClaimRef,
        progress: Progress,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> Result<Settled, Refusal> {
        self.act(claim.run, now, out, |run, changes| run.progress(claim, progress, now, changes))
            .unwrap_or(Ok(Settled::Stale))
    }

    /// Claims up to `want.max` tokens: higher priorities first, then in the order in which they were queued.
    pub fn claim(&mut self, want: &Want, now: Timestamp, out: &mut Vec<Event>) -> Vec<Task> {
        let mut tasks = Vec::new();
        for band in 0..BANDS {
            while tasks.len() < want.max {
                let Some(token) = self.pop(want, band) else { break };
                if !self.is_valid(&token) {
                    continue;
                }
                let claimed = self.act(token.run, now, out, |run, changes| {
                    run.claim(token.node, &want.worker, now, changes)
                });
                if let Some(mut task) = claimed.flatten() {
                    task.queued_at = token.queued_at;
                    self.set_lease(&task, want.lease, now);
                    tasks.push(task);
                }
            }
        }
        tasks
    }

    fn pop(&mut self, want: &Want, band: usize) -> Option<Token> {
        want.queues.iter().find_map(|name| match name.strip_suffix('*') {
            None => self.queues.get_mut(name)?.pop(band),
            Some(prefix) => {
                let from = self.queues.range_mut::<str, _>((Bound::Included(prefix), Bound::Unbounded));
                let mut alike = from.take_while(|(queue, _)| queue.starts_with(prefix));
                alike.find_map(|(_, queue)| queue.pop(band))
            }
        })
    }
}

impl Yard {
    /// Whether a claim might find something. Void tokens count: looking at them is how they go away.
    pub fn has_work(&self, want: &Want) -> bool {
        self.queues.iter().any(|(name, queue)| !queue.is_empty() && want.takes(name))
    }
}
