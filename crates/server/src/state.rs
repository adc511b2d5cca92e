//! What every request can use.

use std::sync::Arc;

use switchyard_runtime::Engine;
use switchyard_runtime::kinds::Services;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::routes::tasks::HeldTasks;

/// Cloning is cheap: one for each request.
#[derive(Clone, Debug)]
pub struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) services: Arc<Services>,
    pub(crate) held: Arc<HeldTasks>,
    pub(crate) metrics: Arc<Metrics>,
    /// What the store is called, for clients that mean one in particular.
    pub(crate) store: Option<Arc<str>>,
    /// Streams and long polls end when this is cancelled.
    pub(crate) stop: CancellationToken,
}

impl ServerState {
    /// `services` are those of the engine's own workers: tasks are prepared for workers elsewhere with them.
    pub fn new(engine: Engine, services: Arc<Services>) -> Self {
        let (held, metrics) = (Arc::default(), Arc::default());
        Self { engine, services, held, metrics, store: None, stop: CancellationToken::new() }
    }

    /// Says which store this is.
    pub fn of_store(mut self, id: Option<String>) -> Self {
        self.store = id.map(Into::into);
        self
    }
}
