//! Configures and opens a Switchyard.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchyard_host::embedded::{Embedded, Options};
use switchyard_store::Clock;

use super::Switchyard;
use crate::{Context, Error, HandlerError, handler};

/// How long a shutdown waits for handlers.
const GRACE: Duration = Duration::from_secs(5);

/// Configures a [`Switchyard`]: its data folder, its handlers and its limits.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened until `open`"]
pub struct SwitchyardBuilder {
    options: Options,
    grace: Duration,
}

impl SwitchyardBuilder {
    pub(crate) fn new(data: PathBuf) -> Self {
        Self { options: Options::new(data), grace: GRACE }
    }

    /// Adds the handler that `function: <name>` in a workflow calls, or replaces it.
    ///
    /// The node's input is deserialised into `I`. If that fails, the node fails for good with the code `input`; a node
    /// without `input` gives `null`, which is `()`. The handler's return value is serialised. If that fails, the node
    /// fails for good with the code `output`. A panic is a failed attempt with the code `panic`.
    ///
    /// The same attempt can run twice, see [`Context::idempotency_key`].
    pub fn handler<I, O, F, Fut>(mut self, name: &str, function: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        F: Fn(I, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, HandlerError>> + Send + 'static,
    {
        handler::register(&mut self.options.handlers, name, function);
        self
    }

    /// Sets how many nodes are executed at once, over all runs; the default is 64.
    pub fn slots(mut self, slots: usize) -> Self {
        self.options.slots = slots;
        self
    }

    /// Lets `command` nodes run programs on this machine, with all rights of this process.
    pub fn allow_commands(mut self, allow: bool) -> Self {
        self.options.nodes.allow_commands = allow;
        self
    }

    /// Sets how long a shutdown waits for handlers; the default is 5 seconds.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long a handler that listens for cancellation may take to stop; the default is 10 seconds.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.options.stop_grace = grace;
        self
    }

    pub(crate) fn data(mut self, data: &Path) -> Self {
        self.options.data = data.into();
        self
    }

    pub(crate) fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.options.clock = clock;
        self
    }

    /// Opens the folder exclusively for this process, creates it if it does not exist, and starts to work: all
    /// unfinished runs in it continue.
    pub async fn open(self) -> Result<Switchyard, Error> {
        let embedded = Embedded::open(self.options).await?;
        let trouble = embedded.work();
        Ok(Switchyard { embedded, trouble, grace: self.grace })
    }
}
