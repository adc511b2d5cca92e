//! The whole of draft 2020-12, checked by the `jsonschema` crate under the budget of an evaluation.
//!
//! The validator loads nothing: references stay within the schema. Patterns are matched in linear time. `format` and
//! the `content…` keywords are annotations, which is the draft's default.

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};
use switchyard_base::Diagnostics;

use super::check::{self, PATTERN_BYTES_MAX};
use super::cost::{Cost, Unchecked};
use super::defaults::Defaults;
use super::document::Document;
use super::report;
use crate::expr::{self, Budget};
use crate::limits;
use crate::problem::{At, Problems};

/// The steps that may be spent on finding every place where an input does not fit; above them only the first is
/// reported.
const REPORT_STEPS_MAX: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Schema {
    document: Document,
    validator: Validator,
}

impl Schema {
    pub(super) fn compile(schema: &Value, at: &At<'_>, problems: &mut Problems) -> Option<Self> {
        if !schema.is_object() {
            problems.add(at, format!("expected a map, found {}", expr::kind(schema)), None);
            return None;
        }
        let before = problems.count();
        for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
            report::of_schema(&error, schema, at, problems);
        }
        let document = check::check(schema, at, problems);
        if problems.count() > before {
            return None;
        }
        match build(schema) {
            Ok(validator) => Some(Self { document, validator }),
            Err(error) => {
                report::of_schema(&error, schema, at, problems);
                None
            }
        }
    }

    pub(super) fn prepare(&self, input: Value, budget: &Budget<'_>) -> Result<Value, Diagnostics> {
        let mut input = self.begin(input);
        let at = At::Root.key("input");
        let mut problems = Problems::default();
        if let Err(unchecked) = self.fill_and_charge(&mut input, budget) {
            problems.add(&at, format!("it cannot be checked: {unchecked}"), None);
        } else if !self.validator.is_valid(&input) {
            self.report(&input, &at, &mut problems);
        }
        problems.finish(None)?;
        Ok(input)
    }

    /// The input to check: without an input, the schema's default, or an empty object if the schema asks for an object.
    fn begin(&self, input: Value) -> Value {
        let types = match self.document.root.get("type") {
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            _ => Vec::new(),
        };
        match (input, self.document.root.get("default")) {
            (Value::Null, Some(default)) => default.clone(),
            (Value::Null, None) if types.contains(&"object") && !types.contains(&"null") => {
                Value::Object(Map::new())
            }
            (input, _) => input,
        }
    }

    fn fill_and_charge(&self, input: &mut Value, budget: &Budget<'_>) -> Result<(), Unchecked> {
        Defaults { document: &self.document, budget }.fill(input)?;
        Cost { document: &self.document, budget, tries: 1 }.of(input)
    }

    fn report(&self, input: &Value, at: &At<'_>, problems: &mut Problems) {
        if self.is_affordable(input, REPORT_STEPS_MAX) {
            for error in self.validator.iter_errors(input) {
                report::of_input(&error, input, &self.document, at, problems);
            }
        } else if self.is_affordable(input, limits::EVALUATION_STEPS_MAX)
            && let Err(error) = self.validator.validate(input)
        {
            report::of_input(&error, input, &self.document, at, problems);
        } else {
            problems.add(at, "it does not fit the schema, and is too large to say where", None);
        }
    }

    fn is_affordable(&self, input: &Value, steps_max: u64) -> bool {
        let budget = Budget::new(steps_max, limits::EVALUATION_BYTES_MAX);
        Cost { document: &self.document, budget: &budget, tries: 2 }.of(input).is_ok()
    }
}

pub(super) fn build(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX);
    jsonschema::draft202012::options()
        .should_validate_formats(false)
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64")
        .with_pattern_options(patterns)
        .build(schema)
}
