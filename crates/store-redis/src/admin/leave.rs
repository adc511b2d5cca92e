//! Removes a consumer from its groups. The script moves its pending entries before it removes it (`leave.lua`, I7).

use std::time::Duration;

use switchyard_store::StoreError;

use super::{RedisAdmin, millis, unreadable};
use crate::scripts;

/// How many entries one call moves.
const AT_ONCE: usize = 500;

/// How many of a consumer's entries were moved, and where to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// The number of streams whose group it has left.
    pub groups: usize,
    /// Entries that were put back on their stream.
    pub returned: usize,
    /// Entries with a claim, which were moved to a worker that is alive.
    pub claimed: usize,
    /// Outdated entries, which were removed.
    pub void: usize,
    /// Entries with a claim that no worker can take over: the consumer stays until their leases have run out.
    pub kept: usize,
}

impl Left {
    pub fn moved(&self) -> usize {
        self.returned + self.claimed + self.void
    }

    pub(super) fn add(&mut self, other: Self) {
        self.groups += other.groups;
        self.returned += other.returned;
        self.claimed += other.claimed;
        self.void += other.void;
        self.kept += other.kept;
    }
}

/// The reason why a consumer is removed from a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Because {
    ItLeaves,
    /// It seems to be a ghost: the script checks again.
    ItIsAGhost {
        fence: u64,
        idle_min: Duration,
    },
}

/// The answer of `leave.lua`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Left,
    Kept,
    Alive,
    Unknown,
    Outdated,
}

impl RedisAdmin {
    /// Removes a worker from the groups of all streams, and signs it off.
    pub async fn leave(&self, name: &str) -> Result<Left, StoreError> {
        let heir = self.heir(name).await?;
        let mut left = Left::default();
        for stream in self.streams().await? {
            left.add(self.leave_stream(&stream, name, heir.as_deref(), Because::ItLeaves).await?.1);
        }
        self.sign_off(name).await?;
        Ok(left)
    }

    /// A live worker other than the one that leaves: the one that reported last.
    pub(super) async fn heir(&self, of: &str) -> Result<Option<String>, StoreError> {
        let workers = self.workers().await?;
        let alive = workers.into_iter().filter(|worker| worker.alive && worker.name != of);
        Ok(alive.max_by_key(|worker| worker.reported).map(|worker| worker.name))
    }

    pub(super) async fn leave_stream(
        &self,
        stream: &str,
        consumer: &str,
        heir: Option<&str>,
        because: Because,
    ) -> Result<(Answer, Left), StoreError> {
        let keys = [
            stream.to_owned(),
            self.keys.queued(),
            self.keys.wake(),
            self.keys.leases(),
            self.keys.workers(),
            self.keys.cleanup_lock(),
        ];
        let (fence, idle_min) = match because {
            Because::ItLeaves => (String::new(), "0".to_owned()),
            Because::ItIsAGhost { fence, idle_min } => (fence.to_string(), millis(idle_min)),
        };
        let heir = heir.unwrap_or_default().to_owned();
        let args = [
            self.keys.begin().to_owned(),
            self.time(),
            consumer.to_owned(),
            heir,
            fence,
            idle_min,
            AT_ONCE.to_string(),
        ];
        let mut sum = Left::default();
        loop {
            let (answer, returned, claimed, void, kept): (String, usize, usize, usize, usize) =
                self.client.run(&scripts::LEAVE, &keys, &args).await?;
            sum.add(Left { groups: 0, returned, claimed, void, kept: 0 });
            let answer = match &*answer {
                "more" => continue,
                "left" => Answer::Left,
                "kept" => Answer::Kept,
                "alive" => Answer::Alive,
                "unknown" => Answer::Unknown,
                "outdated" => Answer::Outdated,
                other => return Err(unreadable(other)),
            };
            sum.groups = usize::from(answer == Answer::Left);
            sum.kept = kept;
            return Ok((answer, sum));
        }
    }
}
