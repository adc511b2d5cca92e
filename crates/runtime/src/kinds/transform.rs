//! `transform`: computes a value from expressions alone.

use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_lang::program::CompiledTransform;

use super::{Call, expression_error};

pub(super) fn execute(call: &Call<'_>, spec: &CompiledTransform) -> Result<Value, NodeError> {
    match &spec.value {
        Some(value) => value.render(call.scope).map_err(|error| expression_error(&error)),
        None => call.input(),
    }
}
