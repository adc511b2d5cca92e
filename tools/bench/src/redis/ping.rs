//! Plain round trips, made between the runs that they are compared with.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use super::RedisPrefix;
use crate::report::Figures;

/// Made after each run.
const AT_ONCE: usize = 20;

pub(crate) struct Pings {
    connection: MultiplexedConnection,
    times: Vec<Duration>,
}

impl Pings {
    pub(crate) async fn at(in_redis: &RedisPrefix) -> anyhow::Result<Self> {
        Ok(Self { connection: in_redis.connect().await?, times: Vec::new() })
    }

    /// By a task of the runtime, as the slots of a worker are: a caller outside it waits for a thread as well.
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

    /// Adds the median of a PING, and how many of them a step takes.
    pub(crate) fn beside(self, figures: Figures) -> Figures {
        let figures = figures.with_times("ping", &self.times);
        let (step, ping) = (figures.0["step_p50_ms"], figures.0["ping_p50_ms"]);
        figures.with("step_p50_in_pings", step / ping)
    }
}
