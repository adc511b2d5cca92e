//! What every request can use.

use std::sync::Arc;

use switchyard_observe::Metrics;
use switchyard_runtime::Engine;
use switchyard_runtime::kinds::Services;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::limits::Limits;

/// Cloning is cheap: one for each request.
#[derive(Clone, Debug)]
pub struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) services: Arc<Services>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access: Access,
    pub(crate) limits: Limits,
    /// Origins of web pages that may use the API besides the server's own, as browsers write them.
    pub(crate) cors_origins: Arc<[String]>,
    /// Waited for at the end. WebSockets are among them: they outlive the requests that they began as.
    pub(crate) connections: TaskTracker,
    /// What the store is called, for clients that mean one in particular.
    pub(crate) store: Option<Arc<str>>,
    /// Streams and long polls end when this is cancelled.
    pub(crate) stop: CancellationToken,
}

impl ServerState {
    /// `services` are those of the engine's own workers: tasks are prepared for workers elsewhere with them.
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

    /// Which clients it lets in. A server that other machines can reach needs keys in any case.
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

    /// Says which store this is.
    pub fn of_store(mut self, id: Option<String>) -> Self {
        self.store = id.map(Into::into);
        self
    }
}
