//! What every request can use.

use std::sync::Arc;

use switchyard_observe::Metrics;
use switchyard_runtime::Engine;
use switchyard_runtime::kinds::Services;
use tokio_util::sync::CancellationToken;

use crate::routes::tasks::HeldTasks;

/// Cloning is cheap: one for each request.
#[derive(Clone, Debug)]
pub struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) services: Arc<Services>,
    pub(crate) held: Arc<HeldTasks>,
    pub(crate) metrics: Arc<Metrics>,
    /// Streams and long polls end when this is cancelled.
    pub(crate) stop: CancellationToken,
}

impl ServerState {
    /// `services` are those of the engine's own workers: tasks are prepared for workers elsewhere with them.
    pub fn new(engine: Engine, services: Arc<Services>) -> Self {
        let metrics = services.observe.metrics().clone();
        Self { engine, services, held: Arc::default(), metrics, stop: CancellationToken::new() }
    }
}
