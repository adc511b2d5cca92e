//! Duties that one process at a time has: a lock with an owner and a fencing number, taken once an interval.

use std::time::Duration;

use switchyard_store::StoreError;

use super::{RedisAdmin, millis};
use crate::scripts;

/// Whether it is this process's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Ours {
        fence: u64,
    },
    /// Another process has it, or it is not time yet: ask again after that long.
    After(Duration),
}

impl RedisAdmin {
    pub(super) async fn take_turn(
        &self,
        lock: &str,
        ttl: Duration,
        every: Duration,
    ) -> Result<Turn, StoreError> {
        let args = [self.time(), self.name.to_string(), millis(ttl), millis(every)];
        let (fence, wait_ms): (u64, i64) =
            self.client.run(&scripts::TURN_TAKE, &[lock.to_owned()], &args).await?;
        Ok(match fence {
            0 => Turn::After(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0))),
            fence => Turn::Ours { fence },
        })
    }

    /// A process that took over in the meantime keeps it.
    pub(super) async fn give_turn(&self, lock: &str, fence: u64) -> Result<(), StoreError> {
        self.client.run::<u8>(&scripts::TURN_GIVE, &[lock.to_owned()], &[fence.to_string()]).await.map(drop)
    }
}
