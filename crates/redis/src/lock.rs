//! A lock that one process at a time holds, with a fencing number. A script that writes under the lock receives the
//! number, and writes nothing if another process has taken the lock since (`has_lock` in `includes/lock.lua`).

use std::sync::LazyLock;
use std::time::Duration;

use redis::FromRedisValue;

use crate::script::{Effect, Script};

/// The Lua include for scripts that write under a lock.
pub const LOCK_INCLUDE: &str = include_str!("scripts/includes/lock.lua");
/// The Lua include for scripts that need the current time.
pub const CLOCK_INCLUDE: &str = include_str!("scripts/includes/clock.lua");

const INCLUDES: &[(&str, &str)] = &[("clock", CLOCK_INCLUDE), ("lock", LOCK_INCLUDE)];

pub static LOCK_TAKE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/lock_take.lua"), INCLUDES, Effect::Writes));
pub static LOCK_RENEW: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/lock_renew.lua"), INCLUDES, Effect::Writes));

/// Runs scripts on the Redis that stores the lock.
pub trait RunScript: Sync {
    type Error;

    fn run_script<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        args: &[String],
    ) -> impl Future<Output = Result<T, Self::Error>> + Send;
}

/// The lock that is stored under one key.
#[derive(Debug)]
pub struct FencedLock<'c, C> {
    client: &'c C,
    key: String,
}

/// The result of an attempt to take the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Ours {
        fence: u64,
    },
    /// Another process holds the lock, or the interval has not passed: ask again after this long.
    NotBefore(Duration),
}

impl<'c, C: RunScript> FencedLock<'c, C> {
    pub fn new(client: &'c C, key: String) -> Self {
        Self { client, key }
    }

    /// Takes the lock for `ttl`, if it is free and was last taken at least `every` ago. `owner` is the token of this
    /// process; `time` is in ms since the epoch, or empty for the server's clock.
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

    /// Renews the lock. False if another process has taken it since.
    pub async fn renew(&self, fence: u64, ttl: Duration) -> Result<bool, C::Error> {
        self.set(fence, at_least_1_ms(ttl)).await
    }

    /// Releases the lock. A process that has taken it over in the meantime keeps it.
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

/// A TTL in ms. At least 1, because 0 would release the lock.
fn at_least_1_ms(length: Duration) -> String {
    length.as_millis().max(1).to_string()
}
