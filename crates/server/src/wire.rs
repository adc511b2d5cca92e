//! Conversions to documents of [`switchyard_api`]; errors become [`Problem`]s.

use serde_json::Value;
use switchyard_core::run::Event;
use switchyard_runtime::RunView;

use crate::problem::Problem;

pub(crate) fn event(event: &Event) -> Result<Value, Problem> {
    Ok(serde_json::to_value(switchyard_api::Event::of(event)?)?)
}

pub(crate) fn run(view: &RunView) -> Result<Value, Problem> {
    Ok(serde_json::to_value(view)?)
}
