//! A compiled workflow: the graph for the core, and the action of each node for the workers.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchyard_base::{DURATION_MAX, Diagnostics, HumanDuration};
use switchyard_core::ir::{Ir, NodeIx};
use switchyard_core::{Hash, Timestamp};

use crate::expr::{Budget, Expr, ExprError, Scope};
use crate::input::InputSchema;
use crate::spec::{Definition, HitlTimeout, ItemError, MethodSpec, WaitTimeout};
use crate::template::Template;

/// A workflow, ready to run. Immutable; share it.
#[derive(Debug)]
pub struct Program {
    pub ir: Arc<Ir>,
    /// The actions of the nodes, in the order of `ir.nodes`.
    pub nodes: Vec<CompiledNode>,
    pub definition: Arc<Definition>,
    /// The definition as JSON with defaults left out. This text is hashed and stored.
    pub canonical: Arc<str>,
    /// The hash of `canonical`.
    pub hash: Hash,
    pub(crate) input: Option<InputSchema>,
    pub(crate) concurrency: Option<(Template, NonZeroU32)>,
    pub(crate) labels: Vec<(Arc<str>, Template)>,
    /// Whether an expression may read `run.scheduled_at`.
    pub reads_schedule: bool,
}

/// The action of a node, and the policies that the worker applies. Retries, joins and errors are in the IR.
#[derive(Debug)]
pub struct CompiledNode {
    pub kind: CompiledKind,
    pub when: Option<Expr>,
    /// The input; rendered per item for `map` (with `item`, `index`), per iteration for `loop` (`last`, `iteration`).
    pub input: Option<Template>,
    /// The author's `timeout`: how long to wait, for nodes that wait. The limit of an attempt is in the IR.
    pub timeout: Option<Duration>,
    pub cache: Option<CompiledCache>,
    /// The names in the node's `secrets.<name>`.
    pub secrets: Vec<String>,
}

#[derive(Debug)]
pub struct CompiledCache {
    pub ttl: Duration,
    /// The cache key. With `None`, the key is everything that the node acts on, rendered.
    pub key: Option<Template>,
}

#[derive(Debug)]
pub enum CompiledKind {
    Http(CompiledHttp),
    Function(CompiledFunction),
    Command(CompiledCommand),
    Transform(CompiledTransform),
    Sleep(CompiledSleep),
    Wait(CompiledWait),
    Hitl(CompiledHitl),
    Map(CompiledMap),
    Loop(CompiledLoop),
    Workflow(CompiledWorkflow),
}

#[derive(Debug)]
pub struct CompiledHttp {
    pub method: MethodSpec,
    pub url: Template,
    pub headers: Vec<(String, Template)>,
    pub query: Vec<(String, Template)>,
    pub body: Option<Template>,
    /// The accepted status codes. If empty, any 2xx.
    pub expect_status: Vec<u16>,
}

#[derive(Debug)]
pub struct CompiledFunction {
    pub function: Arc<str>,
    /// One of [`BUILTINS`], executed by every worker itself.
    pub builtin: bool,
}

/// Functions that need no registration.
pub const BUILTINS: [&str; 3] = ["echo", "fail", "noop"];

#[derive(Debug)]
pub struct CompiledCommand {
    /// The program and its arguments: at least one.
    pub command: Vec<Template>,
    pub env: Vec<(String, Template)>,
    pub cwd: Option<Template>,
}

#[derive(Debug)]
pub struct CompiledTransform {
    /// The value. With `None`, the output is the node's input.
    pub value: Option<Template>,
}

#[derive(Clone, Debug)]
pub enum CompiledSleep {
    For(Template),
    Until(Template),
}

#[derive(Debug)]
pub struct CompiledWait {
    pub signal: Template,
    pub on_timeout: WaitTimeout,
}

#[derive(Debug)]
pub struct CompiledHitl {
    pub approver: Option<Template>,
    pub prompt: Option<Template>,
    pub on_timeout: HitlTimeout,
}

#[derive(Debug)]
pub struct CompiledMap {
    pub items: Template,
    pub concurrency: Option<NonZeroU32>,
    pub on_item_error: ItemError,
    pub body: Body,
}

#[derive(Debug)]
pub struct CompiledLoop {
    /// Evaluated after each iteration, with `output` and `iteration`.
    pub until: Expr,
    pub max_iterations: u32,
    pub body: Body,
}

#[derive(Debug)]
pub struct CompiledWorkflow {
    pub body: Body,
}

/// A child workflow.
#[derive(Clone, Debug)]
pub enum Body {
    Inline(Arc<Program>),
    Named { workflow: Arc<str>, version: Option<NonZeroU32> },
}

impl Program {
    pub fn node(&self, ix: NodeIx) -> &CompiledNode {
        &self.nodes[ix.index()]
    }

    pub fn find(&self, id: &str) -> Option<&CompiledNode> {
        self.ir.find(id).map(|ix| self.node(ix))
    }

    /// Fills in the defaults of the input schema and checks the rest against it.
    pub fn prepare_input(&self, input: Value) -> Result<Value, Diagnostics> {
        self.prepare_input_within(input, &Budget::default())
    }

    /// Like [`Program::prepare_input`], within a budget of the caller, who can check whether it was exceeded.
    pub fn prepare_input_within(&self, input: Value, budget: &Budget<'_>) -> Result<Value, Diagnostics> {
        match &self.input {
            Some(schema) => schema.prepare(input, budget),
            None => Ok(input),
        }
    }

    /// The labels of the workflow's runs; the templates see `input` alone.
    pub fn labels(&self) -> &[(Arc<str>, Template)] {
        &self.labels
    }

    /// The concurrency key and the cap of the workflow's runs, if it limits them. The key sees `input` alone.
    pub fn concurrency(&self) -> Option<(&Template, NonZeroU32)> {
        self.concurrency.as_ref().map(|(key, limit)| (key, *limit))
    }
}

impl CompiledNode {
    /// Everything the node would act on, rendered: two executions with an equal value are alike. `None` for kinds whose
    /// action does not follow from their fields alone.
    pub fn rendered(&self, scope: &Scope, budget: &Budget<'_>) -> Option<Result<Value, ExprError>> {
        let mut templates: Vec<&Template> = self.input.iter().collect();
        match &self.kind {
            CompiledKind::Function(_) => {}
            CompiledKind::Transform(spec) => templates.extend(&spec.value),
            CompiledKind::Http(spec) => {
                templates.push(&spec.url);
                templates.extend(spec.headers.iter().chain(&spec.query).map(|(_, template)| template));
                templates.extend(&spec.body);
            }
            CompiledKind::Command(spec) => {
                templates.extend(&spec.command);
                templates.extend(spec.env.iter().map(|(_, template)| template));
                templates.extend(&spec.cwd);
            }
            CompiledKind::Sleep(_)
            | CompiledKind::Wait(_)
            | CompiledKind::Hitl(_)
            | CompiledKind::Map(_)
            | CompiledKind::Loop(_)
            | CompiledKind::Workflow(_) => return None,
        }
        Some(templates.into_iter().map(|template| template.render(scope, budget)).collect())
    }
}

impl CompiledSleep {
    /// The time at which the node wakes up.
    pub fn wake_at(
        &self,
        scope: &Scope,
        now: Timestamp,
        budget: &Budget<'_>,
    ) -> Result<Timestamp, ExprError> {
        match self {
            Self::For(template) => {
                let length = sleep_length(&template.render(scope, budget)?)
                    .map_err(|reason| template.error(reason))?;
                Ok(now.plus(length))
            }
            Self::Until(template) => {
                let text = template.render_text(scope, budget)?;
                moment(&text).ok_or_else(|| template.error(bad_moment(&text)))
            }
        }
    }
}

/// Parses a duration text, or a number of seconds.
pub(crate) fn sleep_length(value: &Value) -> Result<Duration, String> {
    match value {
        Value::String(text) => {
            let parsed: HumanDuration = text.parse().map_err(|error| format!("{error}"))?;
            Ok(parsed.0)
        }
        Value::Number(number) => {
            let seconds = number.as_f64().unwrap_or(-1.0);
            let length = Duration::try_from_secs_f64(seconds).ok().filter(|length| *length <= DURATION_MAX);
            length.ok_or_else(|| format!("{number} seconds is not a time to sleep"))
        }
        other => Err(format!("expected a duration or a number of seconds, not {}", crate::expr::kind(other))),
    }
}

pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.trim().parse().ok()?;
    Some(Timestamp::from_millis(moment.as_millisecond()))
}

pub(crate) fn bad_moment(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    format!("`{shown}` is not a time such as `2026-01-31T12:00:00Z`")
}
