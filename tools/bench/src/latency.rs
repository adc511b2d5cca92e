//! One run at a time: the time from one step's handler to the next one's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use switchyard_runtime::{AttemptError, Handler, HandlerContext, Handlers};

use crate::redis::Pings;
use crate::report::Figures;
use crate::store::BenchStore;
use crate::{Args, programs};

/// A handler that records when it was called.
#[derive(Clone, Default)]
struct Tick {
    at: Arc<Mutex<Vec<Instant>>>,
}

#[async_trait]
impl Handler for Tick {
    async fn call(&self, _input: Value, _context: HandlerContext) -> Result<Value, AttemptError> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        Ok(Value::Null)
    }
}

impl Tick {
    /// Takes the times between the recorded calls.
    fn take_steps(&self) -> Vec<Duration> {
        let at = std::mem::take(&mut *self.at.lock().unwrap_or_else(PoisonError::into_inner));
        at.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let tick = Tick::default();
    let mut handlers = Handlers::with_builtins();
    handlers.register("tick", tick.clone());
    let store = BenchStore::open(args, handlers).await?;
    let program = programs::chain(args.latency_steps, "tick")?;
    store.work();
    let (mut steps, mut runs) = (Vec::new(), Vec::new());
    let mut pings = match store.in_redis() {
        Some(in_redis) => Some(Pings::at(in_redis).await?),
        None => None,
    };
    for _ in 0..args.latency_runs {
        runs.extend(store.complete(&program, 1, 1).await?);
        steps.extend(tick.take_steps());
        if let Some(so_far) = pings {
            pings = Some(so_far.some_more().await?);
        }
    }
    store.check_succeeded(args.latency_runs).await?;
    let mut figures = Figures::default().with_times("step", &steps).with_times("run", &runs);
    if let Some(pings) = pings {
        figures = pings.beside(figures);
    }
    store.close().await?;
    Ok(figures)
}
