//! The input schema of a workflow: JSON Schema, draft 2020-12.
//!
//! Definitions that were accepted before the whole draft was enforced keep their old rules ([`basic`]): the
//! [`InputDraft`] in the canonical form names the rules it was accepted with.

use serde_json::Value;
use switchyard_base::Diagnostics;

use crate::expr::Budget;
use crate::problem::{At, Problems};
use crate::spec::{Definition, InputDraft, KindSpec, NodeSpec};

mod basic;
mod check;
mod cost;
mod defaults;
mod document;
mod full;
mod report;

/// A compiled input schema.
#[derive(Debug)]
pub(crate) enum InputSchema {
    Basic(basic::Schema),
    Full(Box<full::Schema>),
}

impl InputSchema {
    /// Compiles the input schema. `None` if the workflow has none, or if there was a problem with it.
    pub(crate) fn compile(definition: &Definition, at: &At<'_>, problems: &mut Problems) -> Option<Self> {
        let schema = definition.input.as_ref()?;
        match definition.input_draft {
            None => basic::Schema::compile(schema, at, problems).map(Self::Basic),
            Some(InputDraft::Draft202012) => {
                full::Schema::compile(schema, at, problems).map(|schema| Self::Full(Box::new(schema)))
            }
        }
    }

    /// The input with defaults filled in, if it fits.
    pub(crate) fn prepare(&self, input: Value, budget: &Budget<'_>) -> Result<Value, Diagnostics> {
        match self {
            Self::Basic(schema) => schema.prepare(input, budget),
            Self::Full(schema) => schema.prepare(input, budget),
        }
    }
}

/// Puts the schemas of a new definition, and of the children written in it, under today's rules.
pub(crate) fn adopt(definition: &mut Definition) {
    if definition.input.is_some() {
        definition.input_draft.get_or_insert(InputDraft::Draft202012);
    }
    definition.nodes.values_mut().for_each(adopt_node);
}

/// Does the same for the children of a new node.
pub(crate) fn adopt_node(node: &mut NodeSpec) {
    adopt_kind(&mut node.kind);
    if let Some(compensate) = &mut node.common.compensate {
        adopt_kind(&mut compensate.kind);
    }
}

fn adopt_kind(kind: &mut KindSpec) {
    let Some(body) = kind.body_mut() else { return };
    if let Some(definition) = &mut body.definition {
        adopt(definition);
    }
    body.nodes.iter_mut().flat_map(|nodes| nodes.values_mut()).for_each(adopt_node);
}

#[cfg(test)]
mod tests;
