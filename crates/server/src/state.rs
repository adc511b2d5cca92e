//! What every request can use.

use std::sync::Arc;
use std::time::Duration;

use switchyard_runtime::Engine;
use switchyard_runtime::kinds::Services;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::metrics::Metrics;
use crate::routes::tasks::HeldTasks;

/// How long clients may take. Whoever sends byte by byte is cut off.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the headers of a request.
    pub headers: Duration,
    /// For its body.
    pub body: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { headers: Duration::from_secs(15), body: Duration::from_secs(30) }
    }
}

/// Cloning is cheap: one for each request.
#[derive(Clone, Debug)]
pub struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) services: Arc<Services>,
    pub(crate) held: Arc<HeldTasks>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access: Access,
    pub(crate) limits: Limits,
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
        let (held, metrics) = (Arc::default(), Arc::default());
        let access = Access::default();
        let limits = Limits::default();
        Self {
            engine,
            services,
            held,
            metrics,
            access,
            limits,
            connections: TaskTracker::new(),
            store: None,
            stop: CancellationToken::new(),
        }
    }

    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Whom it lets in. A server on an address that other machines can reach wants keys whatever is set here.
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Says which store this is.
    pub fn of_store(mut self, id: Option<String>) -> Self {
        self.store = id.map(Into::into);
        self
    }
}
