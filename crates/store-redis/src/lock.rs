//! A lock that one process at a time has, with a fencing number: a script that writes under the lock names the number, and
//! writes nothing when another process has taken the lock since.

use std::time::Duration;

use switchyard_store::StoreError;

use crate::client::Client;
use crate::scripts;

#[derive(Debug)]
pub(crate) struct FencedLock<'c> {
    client: &'c Client,
    key: String,
}

/// Whether this process has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Ours {
        fence: u64,
    },
    /// Another process has it, or the interval still lasts: ask again after that long.
    NotBefore(Duration),
}

impl<'c> FencedLock<'c> {
    pub(crate) fn new(client: &'c Client, key: String) -> Self {
        Self { client, key }
    }

    /// Takes it for `ttl`, if it is free and was last taken at least `every` ago. `time` as scripts are told it.
    pub(crate) async fn take(
        &self,
        owner: &str,
        time: String,
        ttl: Duration,
        every: Duration,
    ) -> Result<Taken, StoreError> {
        let args = [time, owner.to_owned(), at_least_1_ms(ttl), every.as_millis().to_string()];
        let (fence, wait_ms): (u64, i64) =
            self.client.run(&scripts::LOCK_TAKE, std::slice::from_ref(&self.key), &args).await?;
        Ok(match fence {
            0 => Taken::NotBefore(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0))),
            fence => Taken::Ours { fence },
        })
    }

    /// False if another process has it by now.
    pub(crate) async fn renew(&self, fence: u64, ttl: Duration) -> Result<bool, StoreError> {
        self.set(fence, at_least_1_ms(ttl)).await
    }

    /// A process that took it over in the meantime keeps it.
    pub(crate) async fn release(&self, fence: u64) -> Result<(), StoreError> {
        self.set(fence, "0".to_owned()).await.map(drop)
    }

    async fn set(&self, fence: u64, ttl: String) -> Result<bool, StoreError> {
        let args = [fence.to_string(), ttl];
        Ok(self.client.run::<u8>(&scripts::LOCK_RENEW, std::slice::from_ref(&self.key), &args).await? == 1)
    }
}

/// 0 would release the lock.
fn at_least_1_ms(length: Duration) -> String {
    length.as_millis().max(1).to_string()
}
