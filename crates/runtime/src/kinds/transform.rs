//! `transform`: computes a value from expressions alone.

use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_lang::program::CompiledTransform;

use super::Call;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledTransform) -> Result<Value, NodeError> {
    match &spec.value {
        Some(value) => call.render(value).await,
        None => call.input().await,
    }
}
