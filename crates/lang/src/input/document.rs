//! A schema document: the places of its subschemas, and the targets of its references.

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

/// The form in which a keyword holds schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Schema,
    List,
    Map,
}

/// Keywords with schemas inside; `None` for all others.
pub(super) fn holds(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "items"
        | "additionalProperties"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => Holds::Schema,
        "prefixItems" | "allOf" | "anyOf" | "oneOf" => Holds::List,
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => Holds::Map,
        _ => return None,
    })
}

/// A regular expression of the schema, measured.
#[derive(Debug)]
pub(super) struct Pattern {
    /// `None` for a pattern that only the dialect of JSON Schema can read.
    pub(super) regex: Option<Regex>,
    /// Positions of the pattern that can be active at once.
    pub(super) places: u64,
}

/// A schema as its author wrote it, with the anchors and patterns that a walk along it needs.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) root: Value,
    /// JSON Pointers of the schemas that `$anchor` and `$dynamicAnchor` name.
    pub(super) anchors: HashMap<String, String>,
    pub(super) patterns: HashMap<String, Pattern>,
}

impl Document {
    /// The schema that a local reference leads to.
    pub(super) fn resolve(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(&self.pointer(reference)?)
    }

    /// The JSON Pointer that a local reference stands for.
    pub(super) fn pointer(&self, reference: &str) -> Option<String> {
        match reference.strip_prefix('#')? {
            fragment if fragment.is_empty() || fragment.starts_with('/') => Some(fragment.to_owned()),
            anchor => self.anchors.get(anchor).cloned(),
        }
    }
}

/// The reference of a schema, if it has one.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref").or_else(|| schema.get("$dynamicRef"))?.as_str()
}
