//! Reports mismatches in the form of the other diagnostics: where, what was expected, what was found.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;
use switchyard_base::suggest;

use super::check::shorten;
use super::document::Document;
use crate::expr;
use crate::problem::{At, Problems, Step};

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Values of an `enum` that a hint lists.
const VALUES_SHOWN: usize = 20;

/// Reports a value that is no schema, or that the validator cannot use.
pub(super) fn of_schema(error: &ValidationError<'_>, schema: &Value, at: &At<'_>, problems: &mut Problems) {
    let steps = steps(at, error.instance_path(), schema);
    let keyword = match steps.last() {
        Some(Step::Key(key)) => key.as_str(),
        _ => "",
    };
    let found = error.instance();
    let (message, hint) = match (keyword, found.as_ref()) {
        ("type", Value::String(name)) => {
            (format!("unknown type `{}`", shorten(name)), suggest::hint(name, &TYPES, "known types"))
        }
        ("type", _) => ("expected a type or a list of types".to_owned(), Some(known_types())),
        ("required", _) => ("expected a list of names".to_owned(), None),
        ("pattern", Value::String(_)) => (as_written(error), Some(no_look_around())),
        _ => message(error, None),
    };
    problems.with_steps(&steps, |at, problems| problems.add(at, message, hint));
}

/// Reports a place where an input does not fit.
pub(super) fn of_input(
    error: &ValidationError<'_>,
    input: &Value,
    document: &Document,
    at: &At<'_>,
    problems: &mut Problems,
) {
    let steps = steps(at, error.instance_path(), input);
    if let Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } =
        error.kind()
    {
        let known = properties_beside(error, document);
        for name in unexpected {
            let hint = suggest::hint(name, &known, "known fields");
            problems.with_steps(&steps, |at, problems| {
                problems.add_at_key(&at.key(name), format!("unknown field `{}`", shorten(name)), hint);
            });
        }
        return;
    }
    let (message, hint) = message(error, Some(problems.is_full()));
    problems.with_steps(&steps, |at, problems| problems.add(at, message, hint));
}

fn message(error: &ValidationError<'_>, is_full: Option<bool>) -> (String, Option<String>) {
    let found = error.instance().as_ref();
    let size = || match found {
        Value::String(text) => text.chars().count(),
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    let plain = |message: String| (message, None);
    match error.kind() {
        Kind::Type { kind } => plain(format!("expected {}, found {}", type_names(kind), expr::kind(found))),
        Kind::Enum { options } => ("not one of the allowed values".to_owned(), Some(allowed(options))),
        Kind::Constant { expected_value } => {
            plain(format!("expected {}, found {}", shown(expected_value), shown(found)))
        }
        Kind::Required { property } => missing(property, found, is_full.unwrap_or(false)),
        Kind::Minimum { limit } => plain(format!("expected {limit} or more, found {}", shown(found))),
        Kind::Maximum { limit } => plain(format!("expected {limit} or less, found {}", shown(found))),
        Kind::ExclusiveMinimum { limit } => {
            plain(format!("expected more than {limit}, found {}", shown(found)))
        }
        Kind::ExclusiveMaximum { limit } => {
            plain(format!("expected less than {limit}, found {}", shown(found)))
        }
        Kind::MultipleOf { multiple_of } => {
            plain(format!("expected a multiple of {multiple_of}, found {}", shown(found)))
        }
        Kind::MinLength { limit } => plain(format!("expected {limit} characters or more, found {}", size())),
        Kind::MaxLength { limit } => plain(format!("expected {limit} characters or less, found {}", size())),
        Kind::MinItems { limit } => plain(format!("expected {limit} items or more, found {}", size())),
        Kind::MaxItems { limit } => plain(format!("expected {limit} items or less, found {}", size())),
        Kind::MinProperties { limit } => plain(format!("expected {limit} fields or more, found {}", size())),
        Kind::MaxProperties { limit } => plain(format!("expected {limit} fields or less, found {}", size())),
        Kind::Pattern { pattern } => {
            plain(format!("expected text that matches `{}`, found {}", shorten(pattern), shown(found)))
        }
        Kind::UniqueItems => plain("expected items that differ, found two that are equal".to_owned()),
        Kind::FalseSchema => plain(format!("nothing is allowed here, found {}", expr::kind(found))),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            ("fits none of the alternatives".to_owned(), alternatives(context))
        }
        Kind::OneOfMultipleValid { .. } => plain("fits more than one of the alternatives".to_owned()),
        _ => plain(as_written(error)),
    }
}

fn missing(property: &Value, found: &Value, is_full: bool) -> (String, Option<String>) {
    let name = property.as_str().unwrap_or_default();
    let near = match found {
        Value::Object(map) if !is_full => suggest::nearest(name, map.keys().map(String::as_str)),
        _ => None,
    };
    let hint = near.map(|near| format!("there is `{near}`: did you mean `{name}`?"));
    (format!("missing `{name}`"), hint)
}

/// The first error of each alternative.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> Option<String> {
    let firsts = context.iter().take(5).filter_map(|errors| errors.first()).map(|error| {
        let (message, _) = message(error, Some(true));
        match error.instance_path().as_str() {
            "" => message,
            path => format!("{} {message}", path.trim_start_matches('/').replace('/', ".")),
        }
    });
    let list: Vec<String> = firsts.collect();
    (!list.is_empty()).then(|| list.join("; or "))
}

fn type_names(kind: &TypeKind) -> String {
    let names: Vec<&str> = match kind {
        TypeKind::Single(one) => vec![one.as_str()],
        TypeKind::Multiple(several) => several.iter().map(JsonType::as_str).collect(),
    };
    names.join(" or ")
}

fn allowed(options: &Value) -> String {
    let list = options.as_array().map_or(&[][..], Vec::as_slice);
    let shown: Vec<String> = list.iter().take(VALUES_SHOWN).map(Value::to_string).collect();
    format!("allowed: {}", shown.join(", "))
}

fn known_types() -> String {
    format!("known types: {}", TYPES.join(", "))
}

pub(super) fn no_look_around() -> String {
    "patterns are matched in linear time: look-around and back-references are not supported".to_owned()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => expr::kind(value).to_owned(),
        scalar => shorten(&scalar.to_string()),
    }
}

fn as_written(error: &ValidationError<'_>) -> String {
    let text = error.masked_with("the value").to_string();
    text.chars().take(200).collect()
}

/// The fields that a schema with `additionalProperties` declares.
fn properties_beside<'d>(error: &ValidationError<'_>, document: &'d Document) -> Vec<&'d str> {
    let beside = error.schema_path().as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
    let properties = document.root.pointer(&format!("{beside}/properties")).and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)).collect()
}

/// A location as a path below `at`. The value tells a name that consists of digits from an index.
fn steps(at: &At<'_>, location: &Location, root: &Value) -> Vec<Step> {
    let mut steps = at.steps();
    let mut value = root;
    for segment in location {
        value = match (segment, value) {
            (LocationSegment::Index(index), Value::Array(list)) => {
                steps.push(Step::Index(index));
                list.get(index).unwrap_or(&Value::Null)
            }
            (segment, value) => {
                let name = segment.to_string();
                let inside = value.get(&name).unwrap_or(&Value::Null);
                steps.push(Step::Key(name));
                inside
            }
        };
    }
    steps
}
