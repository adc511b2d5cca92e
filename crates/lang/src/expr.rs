//! Expressions: CEL, compiled once, evaluated against a [`Scope`].
//!
//! The compiler knows what an expression mentions: its variables, and the nodes it reads. So `nodes` may only be used
//! as `nodes.<id>` or `nodes["<id>"]`, never as a whole or with a computed key.
//!
//! A plain path (`input.a[0].b`, by far the most common expression) does not go through CEL at all: the evaluator looks
//! it up in the JSON, which is faster and keeps the order of its keys. Numbers differ from CEL in one point, because
//! JSON does not tell `2` from `2.0`: arithmetic between an integer and a float gives a float.
//!
//! Every evaluation has a [`Budget`]. The CEL library provides the parser, the values and the functions; this module
//! walks the tree (`plan`, `walk`), because the library's interpreter cannot count steps
//! (`docs/decisions/expression-budgets.md`).

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::limits;
use evaluate::NoValue;

mod access;
mod budget;
mod charge;
mod check;
mod convert;
mod cost;
mod distinct;
mod environment;
mod evaluate;
mod fold;
mod function;
mod operand;
mod operators;
mod path;
mod pattern;
mod plan;
mod scope;
mod walk;

pub use budget::{Budget, Exceeded};
pub(crate) use pattern::places as pattern_places;
pub(crate) use scope::fields as scope_fields;
pub use scope::{NodeView, Scope};

/// The variables an expression may use in one place.
pub type Vars = &'static [&'static str];

/// The variables that expressions may use, by the place where they stand.
pub mod vars {
    use super::Vars;

    /// In most fields of a node, and in the workflow's `output`.
    pub const NODE: Vars = &["input", "nodes", "run"];
    /// In the `request` of an `http` node and the `env` of a `command` node: the rendered values are not stored.
    pub const CALL: Vars = &["input", "nodes", "run", "secrets"];
    /// In the `input` of a `map`, once an item.
    pub const MAP_INPUT: Vars = &["input", "nodes", "run", "item", "index"];
    /// In the `input` of a `loop`, once an iteration.
    pub const LOOP_INPUT: Vars = &["input", "nodes", "run", "last", "iteration"];
    /// In the `until` of a `loop`, after each iteration.
    pub const LOOP_UNTIL: Vars = &["input", "nodes", "run", "output", "iteration"];
    /// In the concurrency key and the labels of a run that has not started.
    pub const SUBMISSION: Vars = &["input"];
}

/// A compiled expression. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Expr(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Box<str>,
    code: Code,
    refs: Refs,
}

#[derive(Debug)]
enum Code {
    Path(path::Path),
    Cel(plan::Plan),
}

/// The variables, nodes and secrets that an expression mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    /// The variables, without `nodes`.
    pub vars: Vec<&'static str>,
    /// The ids in `nodes.<id>`.
    pub nodes: Vec<String>,
    /// Whether the expression may read `run.scheduled_at`: a worker looks that up only for programs that do.
    pub schedule: bool,
    /// The names in `secrets.<name>`.
    pub secrets: Vec<String>,
    /// The paths that the expression certainly looks up, key by key: `["run", "id"]`. Paths in `has()` or `.?` are left
    /// out.
    pub paths: Vec<Vec<String>>,
}

/// An expression that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadExpr {
    pub message: String,
    pub hint: Option<String>,
}

impl BadExpr {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// An expression that failed while it was evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    pub expression: String,
    pub reason: String,
    /// The limit of the budget that the expression exceeded, if that is the reason.
    pub exceeded: Option<Exceeded>,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.expression, self.reason)
    }
}

impl std::error::Error for ExprError {}

impl Expr {
    /// Compiles the text between `${{` and `}}`.
    pub fn compile(source: &str, allowed: Vars) -> Result<Self, BadExpr> {
        let source = source.trim();
        if source.is_empty() {
            return Err(BadExpr::new("the expression is empty"));
        }
        if source.len() > limits::EXPRESSION_BYTES_MAX {
            return Err(BadExpr::new(format!(
                "the expression has {} bytes, more than the limit of {}",
                source.len(),
                limits::EXPRESSION_BYTES_MAX
            )));
        }
        let (code, mut refs) = match path::Path::parse(source, allowed) {
            Some((path, refs)) => (Code::Path(path), refs),
            None => {
                let ast = environment::parse(source)?;
                let refs = check::check(&ast, source, allowed)?;
                (Code::Cel(plan::plan(&ast, &refs)?), refs)
            }
        };
        refs.schedule = refs.vars.contains(&"run") && reads_schedule(source);
        Ok(Self(Arc::new(Compiled { source: source.into(), code, refs })))
    }

    pub fn source(&self) -> &str {
        &self.0.source
    }

    pub fn refs(&self) -> &Refs {
        &self.0.refs
    }

    /// Evaluates to JSON.
    pub fn eval(&self, scope: &Scope, budget: &Budget<'_>) -> Result<Value, ExprError> {
        let result = match &self.0.code {
            Code::Path(path) => copied(path, scope, budget),
            Code::Cel(plan) => evaluate::evaluate(plan, &self.0.refs, scope, budget),
        };
        result.map_err(|error| match error {
            NoValue::Failed(reason) => self.error(reason),
            NoValue::Exceeded(exceeded) => ExprError::exceeded(&self.0.source, exceeded),
        })
    }

    /// Evaluates a condition: anything but a boolean is an error.
    pub fn eval_bool(&self, scope: &Scope, budget: &Budget<'_>) -> Result<bool, ExprError> {
        match self.eval(scope, budget)? {
            Value::Bool(value) => Ok(value),
            other => Err(self.error(format!("a condition must be true or false, not {}", kind(&other)))),
        }
    }

    pub(crate) fn error(&self, reason: impl Into<String>) -> ExprError {
        ExprError { expression: self.0.source.to_string(), reason: reason.into(), exceeded: None }
    }
}

impl ExprError {
    /// The error of an expression, or of the template around it, that exceeded its budget.
    pub(crate) fn exceeded(expression: &str, exceeded: Exceeded) -> Self {
        let shown: String = expression.chars().take(EXPRESSION_SHOWN_CHARS).collect();
        let cut = if shown.len() < expression.len() { "…" } else { "" };
        Self { expression: shown + cut, reason: exceeded.to_string(), exceeded: Some(exceeded) }
    }
}

/// How many characters a message shows of an expression that exceeded its budget.
const EXPRESSION_SHOWN_CHARS: usize = 200;

/// Whether the text uses `run` without one of the fields that every run has.
fn reads_schedule(source: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    source.match_indices("run").any(|(at, run)| {
        let (before, after) = (&source[..at], &source[at + run.len()..]);
        let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        let field = after.trim_start().strip_prefix('.').map(|rest| rest.trim_start());
        let field = field.map(|rest| &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())]);
        whole && !before.trim_end().ends_with('.') && !matches!(field, Some("id" | "name" | "attempt"))
    })
}

fn copied(path: &path::Path, scope: &Scope, budget: &Budget<'_>) -> Result<Value, NoValue> {
    let value = path.lookup(scope)?;
    budget.copy_json(value)?;
    Ok(value.clone())
}

pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests;
