//! What a worker can do, and for whom.

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

/// A worker before it is started.
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

    /// Adds what `function: <name>` in a workflow calls, or replaces it; exactly as
    /// [`SwitchyardBuilder::handler`](crate::SwitchyardBuilder::handler) does. The worker gets tasks of the functions that
    /// it has handlers for; every other function is left to other workers. A name may carry a version (`enrich@2`), so
    /// that workers of two versions serve side by side.
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

    /// The secret that the server knows this worker by.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.client = self.client.api_key(key);
        self
    }

    /// Its name in the histories of runs: the process, unless said.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Takes every task of nodes with this `queue` as well, whichever function it calls.
    pub fn queue(mut self, queue: &str) -> Self {
        self.queues.push(format!("function.{queue}"));
        self
    }

    /// Takes tasks of nodes with a `queue` only: of those that [`WorkerBuilder::queue`] named.
    pub fn only_queues(mut self) -> Self {
        self.only_queues = true;
        self
    }

    /// The version of this program, for `switchyard workers`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// How many handlers run at once: 16 unless said.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots.max(1);
        self
    }

    /// How long a task stays this worker's after it was last heard of, a second to an hour: 30 seconds unless said.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long handlers may finish when the worker is shut down: 5 seconds unless said.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long a handler that listens for requests to stop may take to do so: 10 seconds unless said.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// The functions that it claims. The built-in ones are executed by the server.
    fn functions(&self) -> Vec<String> {
        let own = self.handlers.names().filter(|name| !self.only_queues && !BUILTINS.contains(name));
        own.map(str::to_owned).collect()
    }

    /// Asks the server whether it is there, and starts to work. From then on the server may come and go.
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
