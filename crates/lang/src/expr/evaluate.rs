//! One evaluation in CEL: bind what the expression mentions, run, convert, and put failures into words.

use std::collections::HashMap;

use cel::common::types::{CelMap, CelMapKey};
use cel::common::value::Val;
use cel::{Context, ExecutionError, IdedExpr, Value as Cel};
use serde_json::Value;

use super::environment::{ENV, guarded};
use super::{Refs, Scope, convert};

pub(super) fn evaluate(ast: &IdedExpr, refs: &Refs, scope: &Scope) -> Result<Value, String> {
    let mut context = Context::with_env(ENV.clone());
    for name in &refs.vars {
        context.add_variable_as_val(*name, convert::from_json(scope.var(name)?));
    }
    if !refs.nodes.is_empty() {
        context.add_variable_as_val("nodes", Box::new(nodes(refs, scope)?));
    }
    match guarded(|| Cel::resolve(ast, &context)) {
        Ok(Ok(value)) => convert::to_json(&value),
        Ok(Err(error)) => Err(reason(&error)),
        Err(()) => Err("the evaluator gave up".to_owned()),
    }
}

fn nodes<'a>(refs: &'a Refs, scope: &'a Scope) -> Result<CelMap<'a>, String> {
    let mut nodes: HashMap<CelMapKey<'a>, Box<dyn Val + 'a>> = HashMap::with_capacity(refs.nodes.len());
    for id in &refs.nodes {
        nodes.insert(CelMapKey::from(id.as_str()), convert::from_json(scope.node(id)?));
    }
    Ok(CelMap::from(nodes))
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
