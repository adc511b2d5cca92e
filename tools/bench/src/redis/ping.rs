//! Plain round trips, made between the runs that they are compared with.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use super::RedisPrefix;
use crate::report::Figures;

/// Number of PINGs after each run.
const AT_ONCE: usize = 20;

pub(crate) struct Pings {
    connection: MultiplexedConnection,
    times: Vec<Duration>,
}

impl Pings {
    pub(crate) async fn at(in_redis: &RedisPrefix) -> anyhow::Result<Self> {
        Ok(Self { connection: in_redis.connect().await?, times: Vec::new() })
    }

    /// Sends PINGs from a task of the runtime, like the slots of a worker: a caller outside it also waits for a
    /// thread.
    pub(crate) async fn some_more(mut self) -> anyhow::Result<Self> {
        let pinging = async move {
            for _ in 0..AT_ONCE {
                let began = Instant::now();
                redis::cmd("PING").query_async::<()>(&mut self.connection).await?;
                self.times.push(began.elapsed());
            }
            anyhow::Ok(self)
        };
        tokio::spawn(pinging).await?
    }

    /// Adds the median of a PING, and the ratio of a step to it.
    pub(crate) fn beside(self, figures: Figures) -> Figures {
        let figures = figures.with_times("ping", &self.times);
        let (step, ping) = (figures.0["step_p50_ms"], figures.0["ping_p50_ms"]);
        figures.with("step_p50_in_pings", step / ping)
    }
}
