//! A lock that one process at a time has, with a fencing number: a script that writes under the lock names the number, and
//! writes nothing when another process has taken the lock since (`has_lock` in `includes/lock.lua`).

use std::sync::LazyLock;
use std::time::Duration;

use redis::FromRedisValue;

use crate::script::{Effect, Script};

/// Text for the includes of scripts that write under a lock.
pub const LOCK_INCLUDE: &str = include_str!("scripts/includes/lock.lua");
/// Text for the includes of scripts that go by a time.
pub const CLOCK_INCLUDE: &str = include_str!("scripts/includes/clock.lua");

const INCLUDES: &[(&str, &str)] = &[("clock", CLOCK_INCLUDE), ("lock", LOCK_INCLUDE)];

pub static LOCK_TAKE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/lock_take.lua"), INCLUDES, Effect::Writes));
pub static LOCK_RENEW: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/lock_renew.lua"), INCLUDES, Effect::Writes));

/// Runs scripts on the Redis that has the lock.
pub trait RunScript: Sync {
    type Error;

    fn run_script<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        args: &[String],
    ) -> impl Future<Output = Result<T, Self::Error>> + Send;
}

/// A lock by its key.
#[derive(Debug)]
pub struct FencedLock<'c, C> {
    client: &'c C,
    key: String,
}

/// Whether this process has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Ours {
        fence: u64,
    },
    /// Another process has it, or the interval still lasts: ask again after that long.
    NotBefore(Duration),
}

impl<'c, C: RunScript> FencedLock<'c, C> {
    pub fn new(client: &'c C, key: String) -> Self {
        Self { client, key }
    }

    /// Takes it for `ttl`, if it is free and was last taken at least `every` ago. `owner` is the token of this process;
    /// `time` is in ms since the epoch, or empty for the server's.
    pub async fn take(
        &self,
        owner: &str,
        time: String,
        ttl: Duration,
        every: Duration,
    ) -> Result<Taken, C::Error> {
        let args = [time, owner.to_owned(), at_least_1_ms(ttl), every.as_millis().to_string()];
        let (fence, wait_ms): (u64, i64) = self.run(&LOCK_TAKE, &args).await?;
        Ok(match fence {
            0 => Taken::NotBefore(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0))),
            fence => Taken::Ours { fence },
        })
    }

    /// Renews it. False if another process has it by now.
    pub async fn renew(&self, fence: u64, ttl: Duration) -> Result<bool, C::Error> {
        self.set(fence, at_least_1_ms(ttl)).await
    }

    /// Releases it. A process that took it over in the meantime keeps it.
    pub async fn release(&self, fence: u64) -> Result<(), C::Error> {
        self.set(fence, "0".to_owned()).await.map(drop)
    }

    async fn set(&self, fence: u64, ttl: String) -> Result<bool, C::Error> {
        Ok(self.run::<u8>(&LOCK_RENEW, &[fence.to_string(), ttl]).await? == 1)
    }

    async fn run<T: FromRedisValue>(&self, script: &Script, args: &[String]) -> Result<T, C::Error> {
        self.client.run_script(script, std::slice::from_ref(&self.key), args).await
    }
}

/// 0 would release the lock.
fn at_least_1_ms(length: Duration) -> String {
    length.as_millis().max(1).to_string()
}
