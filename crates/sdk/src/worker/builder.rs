//! Configures and starts a worker.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchyard_client::{Client, ClientBuilder};
use switchyard_lang::program::BUILTINS;
use switchyard_runtime::Handlers;
use tokio_util::sync::CancellationToken;

use super::claiming::Claiming;
use super::{Worker, claiming};
use crate::{Context, Error, HandlerError, handler};

const SLOTS: usize = 16;
const LEASE: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(5);
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// Configures a [`Worker`].
#[derive(Clone, Debug)]
#[must_use = "nothing is claimed until `start`"]
pub struct WorkerBuilder {
    client: ClientBuilder,
    handlers: Handlers,
    name: String,
    queues: Vec<String>,
    only_queues: bool,
    version: String,
    slots: usize,
    lease: Duration,
    grace: Duration,
    cancel_grace: Duration,
}

impl WorkerBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            client: Client::builder(url),
            handlers: Handlers::default(),
            name: format!("sdk-{}", std::process::id()),
            queues: Vec::new(),
            only_queues: false,
            version: String::new(),
            slots: SLOTS,
            lease: LEASE,
            grace: GRACE,
            cancel_grace: CANCEL_GRACE,
        }
    }

    /// Adds the handler that `function: <name>` in a workflow calls, or replaces it, exactly as
    /// [`SwitchyardBuilder::handler`](crate::SwitchyardBuilder::handler) does. The worker claims the functions that it
    /// has handlers for. A name may carry a version (`enrich@2`), so that workers of two versions can serve side by
    /// side.
    pub fn handler<I, O, F, Fut>(mut self, name: &str, function: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        F: Fn(I, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, HandlerError>> + Send + 'static,
    {
        handler::register(&mut self.handlers, name, function);
        self
    }

    /// Sets the API key of this worker.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.client = self.client.api_key(key);
        self
    }

    /// Sets the worker's name in the histories of runs; the default names the process.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Also takes every task of nodes with this `queue`, whichever function it calls.
    pub fn queue(mut self, queue: &str) -> Self {
        self.queues.push(format!("function.{queue}"));
        self
    }

    /// Takes only tasks from the queues that [`WorkerBuilder::queue`] named.
    pub fn only_queues(mut self) -> Self {
        self.only_queues = true;
        self
    }

    /// Sets the version of this program, for `switchyard workers`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets how many handlers run at once; the default is 16.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots.max(1);
        self
    }

    /// Sets how long the worker keeps a task without a heartbeat, a second to an hour; the default is 30 seconds.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long a shutdown waits for handlers; the default is 5 seconds.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long a handler that listens for cancellation may take to stop; the default is 10 seconds.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// The functions that the worker claims. The server executes the built-in ones.
    fn functions(&self) -> Vec<String> {
        let own = self.handlers.names().filter(|name| !self.only_queues && !BUILTINS.contains(name));
        own.map(str::to_owned).collect()
    }

    /// Checks that the server answers, and starts to work. After that the worker tolerates an absent server.
    pub async fn start(self) -> Result<Worker, Error> {
        let functions = self.functions();
        let client = self.client.build()?;
        client.server().await?;
        let (stop, hand_back) = (CancellationToken::new(), CancellationToken::new());
        let claiming = Claiming {
            client,
            handlers: self.handlers,
            name: self.name,
            functions,
            queues: self.queues,
            version: self.version,
            slots: self.slots,
            lease: self.lease,
            cancel_grace: self.cancel_grace,
            stop: stop.clone(),
            hand_back: hand_back.clone(),
        };
        let working = tokio::spawn(claiming::work(Arc::new(claiming)));
        Ok(Worker { stop, hand_back, working, grace: self.grace })
    }
}
