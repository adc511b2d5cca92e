//! The state that all request handlers share.

use std::sync::Arc;

use switchyard_observe::Metrics;
use switchyard_runtime::Engine;
use switchyard_runtime::kinds::Services;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::limits::Limits;

/// The state that all request handlers share. Cloning is cheap: each request gets a clone.
#[derive(Clone, Debug)]
pub struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) services: Arc<Services>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access: Access,
    pub(crate) limits: Limits,
    /// Origins of web pages that may use the API besides the server's own, as browsers write them.
    pub(crate) cors_origins: Arc<[String]>,
    /// The server waits for these tasks when it stops. They include WebSockets, which outlive their upgrade requests.
    pub(crate) connections: TaskTracker,
    /// The id of the store, so that a client can check that it talks to the store it expects.
    pub(crate) store: Option<Arc<str>>,
    /// Streams and long polls end when this is cancelled.
    pub(crate) stop: CancellationToken,
}

impl ServerState {
    /// Creates the state. `services` are those of the engine's own workers; the server uses them to prepare tasks for
    /// workers over HTTP.
    pub fn new(engine: Engine, services: Arc<Services>) -> Self {
        let metrics = services.observe.metrics().clone();
        let access = Access::default();
        Self {
            engine,
            services,
            metrics,
            access,
            limits: Limits::default(),
            cors_origins: Arc::default(),
            store: None,
            connections: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Sets which clients the server admits. A server that other machines can reach always requires keys.
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Lets pages of these origins use the API from a browser.
    pub fn with_cors_origins(self, origins: Vec<String>) -> Self {
        Self { cors_origins: origins.into(), ..self }
    }

    /// Sets the id of the store.
    pub fn of_store(mut self, id: Option<String>) -> Self {
        self.store = id.map(Into::into);
        self
    }
}
