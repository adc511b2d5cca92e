//! One evaluation: looks up what the expression mentions, walks the plan under a budget, and converts the result to
//! JSON.

use std::cell::RefCell;
use std::collections::HashMap;

use cel::ExecutionError;
use serde_json::Value;

use super::budget::{Budget, Exceeded};
use super::environment::guarded;
use super::operand::Conversions;
use super::pattern::Pattern;
use super::plan::Plan;
use super::{Refs, Scope, convert};

/// Why an evaluation ended without a value.
#[derive(Debug)]
pub(super) enum Stop {
    /// An error of the expression. `||`, `&&`, `all`, `exists` and optional selection may swallow it.
    Failed(ExecutionError),
    /// The budget was exceeded. No operator swallows this.
    Exceeded(Exceeded),
}

impl From<ExecutionError> for Stop {
    fn from(error: ExecutionError) -> Self {
        Self::Failed(error)
    }
}

impl From<Exceeded> for Stop {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

/// The variables, nodes and budget of an evaluation.
pub(super) struct Evaluation<'a, 'v> {
    pub(super) budget: &'a Budget<'a>,
    pub(super) vars: Vec<&'v Value>,
    pub(super) nodes: Vec<&'v Value>,
    /// Patterns of `matches` that are not literals, compiled once per evaluation.
    pub(super) patterns: RefCell<HashMap<String, Pattern>>,
    pub(super) conversions: Conversions<'v>,
}

/// Why there is no value: a sentence, or the limit that was exceeded.
#[derive(Debug)]
pub(super) enum NoValue {
    Failed(String),
    Exceeded(Exceeded),
}

impl From<String> for NoValue {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl From<Exceeded> for NoValue {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

pub(super) fn evaluate(
    plan: &Plan,
    refs: &Refs,
    scope: &Scope,
    budget: &Budget<'_>,
) -> Result<Value, NoValue> {
    let evaluation = Evaluation {
        budget,
        vars: refs.vars.iter().map(|name| scope.var(name)).collect::<Result<_, _>>()?,
        nodes: refs.nodes.iter().map(|id| scope.node(id)).collect::<Result<_, _>>()?,
        patterns: RefCell::default(),
        conversions: Conversions::default(),
    };
    let answer = guarded(|| match evaluation.eval(plan, None) {
        Ok(value) => convert::to_json(value, budget),
        Err(Stop::Failed(error)) => Err(reason(&error).into()),
        Err(Stop::Exceeded(exceeded)) => Err(exceeded.into()),
    });
    // Checked again, because code in between may have hidden the error.
    if let Some(exceeded) = budget.exceeded() {
        return Err(exceeded.into());
    }
    answer.unwrap_or_else(|()| Err("the evaluator gave up".to_owned().into()))
}

fn reason(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: `{key}`"),
        ExecutionError::UndeclaredReference(name) => format!("unknown name `{name}`"),
        ExecutionError::NoSuchOverload(overload) => {
            let operator = overload.function().trim_matches(['_', '@']);
            let types = overload.argument_types().join(" and ");
            format!("`{operator}` cannot be used with {types}")
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "the result is too large for an integer".to_owned(),
        ExecutionError::FunctionError { function, message } => format!("`{function}`: {message}"),
        // Other messages show whole values, which may be large or not meant for a log.
        other => sentence(&other.to_string()),
    }
}

fn sentence(text: &str) -> String {
    let mut short: String = text.chars().take(200).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    let lower_first = short.chars().next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    let rest: String = short.chars().skip(1).collect();
    lower_first + &rest
}
