//! Node kinds: one file for each.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_core::run::{Task, WaitFor};
use switchyard_lang::{CompiledKind, CompiledNode, ExprError, Program, Scope, Template};
use switchyard_observe::Observe;
use switchyard_store::{Archive, Clock};

use crate::evaluate::{render, render_text};
use crate::handlers;
use crate::secrets::{Revealed, Secrets};
use crate::worker::Held;
use crate::{AttemptError, Catalog, Handlers, Payloads};

mod children;
mod command;
mod content;
mod function;
mod hitl;
mod http;
mod loop_node;
mod map;
mod sleep;
mod transform;
mod wait;
mod workflow;

#[cfg(test)]
mod tests;

pub use command::Commands;
pub use http::{Egress, HttpCalls};

/// A client builder with this process's TLS. `http` nodes have a client of their own ([`HttpCalls`]).
pub fn http_client() -> reqwest::ClientBuilder {
    http::client()
}

/// The error code of an attempt that exceeded its time limit. The core uses the same code for claims past their
/// limit.
pub const TIMEOUT: &str = "timeout";

/// The error code of an evaluation that exceeded its budget.
const EXPRESSION_BUDGET: &str = "expression_budget";

/// Limits on what nodes may do with the machine and the network of their worker.
#[derive(Clone, Debug, Default)]
pub struct NodeSettings {
    /// Whether `command` nodes may run programs on this machine.
    pub allow_commands: bool,
    pub commands: Commands,
    pub egress: Egress,
    pub secrets: Secrets,
}

/// The services that node kinds use, shared by all slots of a worker.
pub struct Services {
    pub http: HttpCalls,
    pub handlers: Handlers,
    /// Whether `command` nodes may run programs on this machine.
    pub allow_commands: bool,
    pub commands: Commands,
    pub secrets: Secrets,
    pub catalog: Arc<Catalog>,
    pub archive: Arc<dyn Archive>,
    pub payloads: Payloads,
    pub clock: Arc<dyn Clock>,
    pub observe: Observe,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("handlers", &self.handlers)
            .field("allow_commands", &self.allow_commands)
            .field("catalog", &self.catalog)
            .finish_non_exhaustive()
    }
}

impl Services {
    /// Fails if TLS cannot be set up on this machine.
    pub fn new(
        nodes: NodeSettings,
        handlers: Handlers,
        catalog: Arc<Catalog>,
        archive: Arc<dyn Archive>,
        payloads: Payloads,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, reqwest::Error> {
        let NodeSettings { allow_commands, commands, egress, secrets } = nodes;
        let http = HttpCalls::new(egress)?;
        let observe = Observe::default();
        Ok(Self {
            http,
            handlers,
            allow_commands,
            commands,
            secrets,
            catalog,
            archive,
            payloads,
            clock,
            observe,
        })
    }
}

/// One execution of a node, whose `when` is true and whose timeout is running.
#[derive(Debug)]
pub struct Call<'a> {
    pub task: &'a Task,
    pub program: &'a Arc<Program>,
    pub node: &'a CompiledNode,
    /// `input`, `run`, and the nodes that this one reads.
    pub scope: &'a Scope,
    pub services: &'a Services,
    /// The claim of the call, for reports while the handler works.
    pub held: &'a Held,
    /// The secrets that the node's expressions name; none until the node is executed.
    pub secrets: &'a Revealed,
}

/// The result of an execution that did not fail.
#[derive(Debug)]
pub enum Done {
    Output(Value),
    Waiting(WaitFor),
}

/// Executes a node once. Dropping the future stops it: an HTTP request is abandoned, a program is killed.
pub async fn execute(call: Call<'_>) -> Result<Done, AttemptError> {
    if call.node.secrets.is_empty() {
        return dispatch(call).await;
    }
    let secrets = Revealed::look_up(&call.services.secrets, &call.node.secrets).await?;
    let scope = secrets.added_to(call.scope);
    match dispatch(Call { scope: &scope, secrets: &secrets, ..call }).await {
        Ok(Done::Output(output)) => Ok(Done::Output(secrets.redact(output))),
        Ok(waiting) => Ok(waiting),
        Err(AttemptError::Node(error)) => Err(secrets.redact_error(error).into()),
        Err(error) => Err(error),
    }
}

async fn dispatch(call: Call<'_>) -> Result<Done, AttemptError> {
    Ok(match &call.node.kind {
        CompiledKind::Http(spec) => Done::Output(http::execute(&call, spec).await?),
        CompiledKind::Function(spec) => Done::Output(function::execute(&call, spec).await?),
        CompiledKind::Command(spec) => Done::Output(command::execute(&call, spec).await?),
        CompiledKind::Transform(spec) => Done::Output(transform::execute(&call, spec).await?),
        CompiledKind::Sleep(spec) => Done::Waiting(sleep::execute(&call, spec).await?),
        CompiledKind::Wait(spec) => Done::Waiting(wait::execute(&call, spec).await?),
        CompiledKind::Hitl(spec) => Done::Waiting(hitl::execute(&call, spec).await?),
        CompiledKind::Map(spec) => map::execute(&call, spec).await?,
        CompiledKind::Loop(spec) => loop_node::execute(&call, spec).await?,
        CompiledKind::Workflow(spec) => workflow::execute(&call, spec).await?,
    })
}

impl Call<'_> {
    /// The node's input; null if it has none. Not for `map` and `loop`, which have one for each child.
    async fn input(&self) -> Result<Value, NodeError> {
        input(self.node, self.scope).await
    }

    async fn render(&self, template: &Template) -> Result<Value, NodeError> {
        render(template, self.scope).await.map_err(|error| expression_error(&error))
    }

    async fn render_text(&self, template: &Template) -> Result<String, NodeError> {
        render_text(template, self.scope).await.map_err(|error| expression_error(&error))
    }

    fn idempotency_key(&self) -> String {
        handlers::idempotency_key(self.task.run, &self.task.node)
    }

    /// Text that becomes part of the run's history, and so must be short.
    async fn short_text(
        &self,
        field: &str,
        template: &Template,
        bytes_max: usize,
    ) -> Result<Arc<str>, NodeError> {
        let text = self.render_text(template).await?;
        if text.len() > bytes_max {
            let message =
                format!("`{field}` has {} bytes, more than the {bytes_max} it may have", text.len());
            return Err(NodeError::permanent("too_long", message));
        }
        Ok(text.into())
    }
}

pub(crate) async fn input(node: &CompiledNode, scope: &Scope) -> Result<Value, NodeError> {
    match &node.input {
        Some(template) => render(template, scope).await.map_err(|error| expression_error(&error)),
        None => Ok(Value::Null),
    }
}

pub(crate) fn expression_error(error: &ExprError) -> NodeError {
    match error.exceeded {
        None => NodeError::permanent("expression", error.to_string()),
        Some(exceeded) if exceeded.is_retryable() => {
            NodeError::retryable(EXPRESSION_BUDGET, error.to_string())
        }
        Some(_) => NodeError::permanent(EXPRESSION_BUDGET, error.to_string()),
    }
}
