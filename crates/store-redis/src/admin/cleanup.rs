//! Removes ghosts: consumers whose worker is gone. Their pending entries are moved first.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use switchyard_redis::{FencedLock, Taken};
use switchyard_store::StoreError;

use super::RedisAdmin;
use super::consumers::{Consumer, ConsumerStatus};
use super::leave::{Answer, Because, Left};

/// Lists the pods of workers, on Kubernetes.
#[async_trait]
pub trait LivePods: Send + Sync + fmt::Debug {
    /// The names of all pods. An error must name the server that was asked.
    async fn names(&self) -> Result<BTreeSet<String>, String>;
}

/// Settings of the cleanup of ghosts.
#[derive(Clone, Copy, Debug)]
pub struct CleanupPolicy {
    /// How long a consumer must have read nothing to count as a ghost.
    pub idle_min: Duration,
    /// Only find ghosts, do not remove them.
    pub dry_run: bool,
    /// How long the lock lasts if its process dies.
    pub lock: Duration,
    /// The least interval between passes of all processes; zero for a pass in any case.
    pub every: Duration,
}

/// The result of one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// The number of consumers that were checked.
    pub scanned: usize,
    pub ghosts: Vec<Ghost>,
}

/// A ghost, and the result of its removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ghost {
    #[serde(flatten)]
    pub consumer: Consumer,
    pub deleted: bool,
    /// The number of its pending entries that were put back on the stream. `claimed` were moved to another worker,
    /// `void` were outdated, `kept` stayed with the ghost.
    pub returned: usize,
    pub claimed: usize,
    pub void: usize,
    pub kept: usize,
    /// The error that kept it from being removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl CleanedUp {
    pub fn deleted(&self) -> usize {
        self.ghosts.iter().filter(|ghost| ghost.deleted).count()
    }

    pub fn errors(&self) -> usize {
        self.ghosts.iter().filter(|ghost| ghost.error.is_some()).count()
    }

    pub fn moved(&self) -> Left {
        let mut sum = Left::default();
        for ghost in &self.ghosts {
            let Ghost { returned, claimed, void, kept, .. } = *ghost;
            sum.add(Left { groups: usize::from(ghost.deleted), returned, claimed, void, kept });
        }
        sum
    }
}

/// The result of a pass, if it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pass<T> {
    Made(T),
    /// Another process makes a pass, or made one recently: ask again after this long.
    NotNow(Duration),
}

impl RedisAdmin {
    /// Removes ghosts from the consumer groups, if it is this process's turn. Fails without removing any if `pods` is
    /// given and cannot list the pods.
    pub async fn clean_up(
        &self,
        policy: &CleanupPolicy,
        pods: Option<&dyn LivePods>,
    ) -> Result<Pass<CleanedUp>, StoreError> {
        let lock = FencedLock::new(&self.client, self.keys.cleanup_lock());
        let fence = match lock.take(&self.name, self.time(), policy.lock, policy.every).await? {
            Taken::Ours { fence } => fence,
            Taken::NotBefore(wait) => return Ok(Pass::NotNow(wait)),
        };
        let done = self.clean_up_now(policy, pods, fence).await;
        lock.release(fence).await?;
        Ok(Pass::Made(done?))
    }

    async fn clean_up_now(
        &self,
        policy: &CleanupPolicy,
        pods: Option<&dyn LivePods>,
        fence: u64,
    ) -> Result<CleanedUp, StoreError> {
        let pods = match pods {
            Some(pods) => Some(pods.names().await.map_err(|why| {
                StoreError::unavailable(format!("the pods of workers cannot be listed: {why}"))
            })?),
            None => None,
        };
        let members = self.consumers(policy.idle_min, pods.as_ref()).await?;
        let scanned = members.len();
        let mut ghosts = Vec::new();
        for consumer in members.into_iter().filter(|member| member.standing == ConsumerStatus::Ghost) {
            if policy.dry_run {
                ghosts.push(Ghost::of(consumer));
                continue;
            }
            let because = Because::ItIsAGhost { fence, idle_min: policy.idle_min };
            match self.remove_ghost(consumer, because).await {
                (Answer::Outdated, _) => break,
                (Answer::Alive | Answer::Unknown, Ghost { error: None, .. }) => {}
                (_, ghost) => ghosts.push(ghost),
            }
        }
        Ok(CleanedUp { scanned, ghosts })
    }

    async fn remove_ghost(&self, consumer: Consumer, because: Because) -> (Answer, Ghost) {
        let leaving = async {
            let heir = self.heir(&consumer.name).await?;
            self.leave_stream(&consumer.stream, &consumer.name, heir.as_deref(), because).await
        };
        match leaving.await {
            Ok((answer, Left { groups, returned, claimed, void, kept })) => {
                let deleted = groups > 0;
                (answer, Ghost { deleted, returned, claimed, void, kept, ..Ghost::of(consumer) })
            }
            Err(error) => (Answer::Kept, Ghost { error: Some(error.to_string()), ..Ghost::of(consumer) }),
        }
    }
}

impl Ghost {
    fn of(consumer: Consumer) -> Self {
        Self { consumer, deleted: false, returned: 0, claimed: 0, void: 0, kept: 0, error: None }
    }
}
