//! The values that an expression can use.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

/// The fields of `run`, nodes and errors, which the compiler checks.
pub(crate) mod fields {
    pub(crate) const RUN: [&str; 4] = ["id", "name", "attempt", "scheduled_at"];
    pub(crate) const NODE: [&str; 3] = ["status", "output", "error"];
    pub(crate) const ERROR: [&str; 2] = ["code", "message"];
}

/// The values of an expression's variables. Make it once and set the variables that differ (`item`, `iteration`).
#[derive(Clone, Debug, Default)]
pub struct Scope {
    vars: HashMap<&'static str, Arc<Value>>,
    nodes: HashMap<String, Arc<Value>>,
}

/// The part of an ended node that an expression can read.
#[derive(Clone, Debug, Default)]
pub struct NodeView {
    /// `succeeded`, `failed`, `skipped`, …
    pub status: String,
    /// The output; null unless the node succeeded.
    pub output: Value,
    /// `{code, message}` if the node failed.
    pub error: Value,
}

impl Scope {
    pub fn new(input: impl Into<Arc<Value>>) -> Self {
        let mut scope = Self::default();
        scope.set("input", input);
        scope
    }

    /// Sets a variable: `input`, `item`, `index`, `last`, `iteration`, `output`.
    pub fn set(&mut self, name: &'static str, value: impl Into<Arc<Value>>) {
        self.vars.insert(name, value.into());
    }

    /// Sets `run`: its id, the name of its workflow, the attempt of the node, and the tick of the schedule that
    /// started it.
    pub fn set_run(&mut self, id: &str, name: &str, attempt: u32, scheduled_at: Option<&str>) {
        self.set("run", json!({ "id": id, "name": name, "attempt": attempt, "scheduled_at": scheduled_at }));
    }

    /// Sets `nodes.<id>`.
    pub fn set_node(&mut self, id: impl Into<String>, view: NodeView) {
        let value = json!({ "status": view.status, "output": view.output, "error": view.error });
        self.nodes.insert(id.into(), Arc::new(value));
    }

    pub(super) fn var(&self, name: &str) -> Result<&Value, String> {
        self.vars.get(name).map(|value| &**value).ok_or_else(|| format!("`{name}` is not available here"))
    }

    pub(super) fn node(&self, id: &str) -> Result<&Value, String> {
        self.nodes.get(id).map(|value| &**value).ok_or_else(|| format!("node `{id}` has not ended"))
    }
}
