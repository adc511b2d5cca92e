//! Functions that a worker can execute by name.

mod chunks;
mod claim;
mod context;
mod logs;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use switchyard_core::NodeError;

pub use chunks::CHUNK_BYTES_MAX;
pub use claim::{Beat, Cancellation, ClaimError, HeldClaim, Stopped};
pub use context::{HandlerCall, HandlerContext, idempotency_key};
pub(crate) use logs::{ByteLines, cut as cut_log_line};
pub use logs::{LOG_LINE_BYTES_MAX, LogStream};

use crate::AttemptError;

/// A function that a `function` node calls.
///
/// A handler can be called twice for the same attempt, if the worker is lost after the effect and before the result
/// was recorded. To avoid a double effect, pass [`HandlerContext::idempotency_key`] to the called system.
#[async_trait]
pub trait Handler: Send + Sync {
    async fn call(&self, input: Value, context: HandlerContext) -> Result<Value, AttemptError>;
}

/// Handlers by name. Cloning is cheap; a clone does not see handlers that are registered later.
#[derive(Clone)]
pub struct Handlers {
    by_name: Arc<BTreeMap<Arc<str>, Arc<dyn Handler>>>,
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Default for Handlers {
    fn default() -> Self {
        Self::with_builtins()
    }
}

impl Handlers {
    /// `echo`, `fail` and `noop`: the [`BUILTINS`](switchyard_lang::program::BUILTINS) that every worker has.
    pub fn with_builtins() -> Self {
        let mut handlers = Self { by_name: Arc::default() };
        handlers
            .register("echo", Echo)
            .register("fail", Fail)
            .register_fn("noop", |_, _| async { Ok(Value::Null) });
        handlers
    }

    /// Adds a handler, or replaces the one of that name.
    pub fn register(&mut self, name: impl Into<Arc<str>>, handler: impl Handler + 'static) -> &mut Self {
        Arc::make_mut(&mut self.by_name).insert(name.into(), Arc::new(handler));
        self
    }

    /// Adds a closure as a handler: `|input, context| async move { … }`.
    pub fn register_fn<F, Fut>(&mut self, name: impl Into<Arc<str>>, function: F) -> &mut Self
    where
        F: Fn(Value, HandlerContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, AttemptError>> + Send + 'static,
    {
        self.register(name, Function(function))
    }

    /// The names of the handlers, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Handler>> {
        self.by_name.get(name)
    }
}

struct Function<F>(F);

#[async_trait]
impl<F, Fut> Handler for Function<F>
where
    F: Fn(Value, HandlerContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Value, AttemptError>> + Send,
{
    async fn call(&self, input: Value, context: HandlerContext) -> Result<Value, AttemptError> {
        (self.0)(input, context).await
    }
}

/// Returns its input.
struct Echo;

#[async_trait]
impl Handler for Echo {
    async fn call(&self, input: Value, _: HandlerContext) -> Result<Value, AttemptError> {
        Ok(input)
    }
}

/// Fails, to try out error handling: `{message?, code?, retryable? (true), until_attempt?}`. From attempt
/// `until_attempt` on it succeeds with `{attempt}`.
struct Fail;

#[async_trait]
impl Handler for Fail {
    async fn call(&self, input: Value, context: HandlerContext) -> Result<Value, AttemptError> {
        let until_attempt = input["until_attempt"].as_u64();
        if until_attempt.is_some_and(|until| u64::from(context.attempt) >= until) {
            return Ok(json!({ "attempt": context.attempt }));
        }
        Err(NodeError {
            code: input["code"].as_str().unwrap_or("failed").into(),
            message: input["message"].as_str().unwrap_or("failed, as it was asked to").into(),
            retryable: input["retryable"].as_bool().unwrap_or(true),
            retry_after: None,
        }
        .into())
    }
}
