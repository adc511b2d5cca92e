//! Queues tokens of a run that became ready together. If there are more than a script should queue in one call, the
//! commit puts them on a list, from which they are moved to their streams in batches.

use switchyard_core::in_flight::QueuedToken;
use switchyard_store::StoreError;

use crate::scripts;
use crate::store::RedisStore;

/// How many tokens one call queues.
pub(super) const TOKENS_AT_ONCE: usize = 500;

/// The member of `wf.ready` for a list of tokens.
pub(super) fn member(token: &QueuedToken, number: u64) -> String {
    format!("{} {} {number:016x}", token.run, token.generation)
}

impl RedisStore {
    /// Queues the tokens of these lists. If that fails, [`Self::queue_left`] queues the rest later.
    pub(super) async fn queue_all(&self, members: &[String]) {
        for member in members {
            if let Err(error) = self.queue_list(member).await {
                tracing::warn!(%error, "tokens that are ready are queued later");
                return;
            }
        }
    }

    /// Queues tokens that other processes left on lists, because they died after their commit.
    pub(crate) async fn queue_left(&self) -> Result<(), StoreError> {
        let members: Vec<String> =
            self.client.query(redis::cmd("ZRANGE").arg(self.keys.ready()).arg(0).arg(-1)).await?;
        for member in &members {
            self.queue_list(member).await?;
        }
        Ok(())
    }

    async fn queue_list(&self, member: &str) -> Result<(), StoreError> {
        let keys = [self.keys.ready_list(member), self.keys.ready(), self.keys.queued(), self.keys.wake()];
        let args = [self.keys.begin(), member, &TOKENS_AT_ONCE.to_string()];
        while self.client.run::<u64>(&scripts::QUEUE_READY, &keys, &args).await? > 0 {}
        Ok(())
    }
}
