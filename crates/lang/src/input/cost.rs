//! The cost of checking an input, charged before the check.
//!
//! The validator has no budget of its own, and a short schema can ask for very much: `anyOf` inside `anyOf` by
//! references, a large `enum` for each of many items, a large pattern on a long text. So this walk visits schema and
//! input first, keyword by keyword, without deciding anything.

use std::fmt;

use serde_json::{Map, Value};

use super::document::{Document, Pattern};
use crate::expr::{Budget, Exceeded};

/// How deep schemas may apply inside each other to one input. The validator recurses on the worker's stack.
pub(super) const DEPTH_MAX: usize = 512;

/// Positions of a pattern that are compared with a character in the time of one step.
const PLACES_PER_STEP: u64 = 8;

/// Why an input cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unchecked {
    Exceeded(Exceeded),
    TooDeep,
}

impl From<Exceeded> for Unchecked {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exceeded(exceeded) => exceeded.fmt(f),
            Self::TooDeep => write!(f, "its schemas apply inside each other deeper than {DEPTH_MAX} levels"),
        }
    }
}

type Charged = Result<(), Unchecked>;

/// One walk along a schema and an input.
pub(super) struct Cost<'a> {
    pub(super) document: &'a Document,
    pub(super) budget: &'a Budget<'a>,
    /// How often the validator tries an alternative that does not fit: once to find that out, twice to report why.
    pub(super) tries: usize,
}

impl Cost<'_> {
    pub(super) fn of(&self, value: &Value) -> Charged {
        self.schema(&self.document.root, value, 0)
    }

    fn schema(&self, schema: &Value, value: &Value, depth: usize) -> Charged {
        self.budget.step(1)?;
        if depth > DEPTH_MAX {
            return Err(Unchecked::TooDeep);
        }
        let Value::Object(schema) = schema else { return Ok(()) };
        // `unevaluated…` evaluates the sibling schemas once more.
        let asked =
            ["unevaluatedProperties", "unevaluatedItems"].iter().any(|name| schema.contains_key(*name));
        for (keyword, operand) in schema {
            self.assertion(keyword, operand, value)?;
            for _ in 0..=usize::from(asked) {
                self.in_place(keyword, operand, value, depth + 1)?;
            }
            match value {
                Value::Object(map) => self.object(keyword, operand, schema, map, depth + 1)?,
                Value::Array(list) => self.array(keyword, operand, schema, list, depth + 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn assertion(&self, keyword: &str, operand: &Value, value: &Value) -> Charged {
        match (keyword, operand, value) {
            ("enum", Value::Array(allowed), _) => self.budget.compare_json(value, allowed.len())?,
            ("const", ..) => self.budget.compare_json(value, 1)?,
            // Each item is hashed; few items are compared with each other.
            ("uniqueItems", Value::Bool(true), Value::Array(_)) => self.budget.compare_json(value, 16)?,
            ("pattern", Value::String(pattern), Value::String(text)) => self.matches(pattern, text)?,
            ("minLength" | "maxLength", _, Value::String(text)) => self.budget.scan(text.len() as u64)?,
            ("required", Value::Array(names), Value::Object(_)) => self.budget.step(names.len() as u64)?,
            _ => {}
        }
        Ok(())
    }

    /// Charges for keywords that apply schemas to the value itself.
    fn in_place(&self, keyword: &str, operand: &Value, value: &Value, depth: usize) -> Charged {
        match (keyword, operand) {
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                self.document.resolve(reference).map_or(Ok(()), |schema| self.schema(schema, value, depth))
            }
            ("allOf", Value::Array(schemas)) => self.all(schemas.iter(), value, depth),
            ("anyOf" | "oneOf", Value::Array(schemas)) => {
                (0..self.tries).try_for_each(|_| self.all(schemas.iter(), value, depth))
            }
            ("not" | "if" | "then" | "else", schema) => self.schema(schema, value, depth),
            ("dependentSchemas", Value::Object(schemas)) => self.all(schemas.values(), value, depth),
            _ => Ok(()),
        }
    }

    fn all<'v>(&self, mut schemas: impl Iterator<Item = &'v Value>, value: &Value, depth: usize) -> Charged {
        schemas.try_for_each(|schema| self.schema(schema, value, depth))
    }

    fn object(
        &self,
        keyword: &str,
        operand: &Value,
        siblings: &Map<String, Value>,
        map: &Map<String, Value>,
        depth: usize,
    ) -> Charged {
        match (keyword, operand) {
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    self.budget.step(1)?;
                    map.get(name).map_or(Ok(()), |value| self.schema(schema, value, depth))?;
                }
            }
            ("patternProperties", Value::Object(patterns)) => {
                for (pattern, schema) in patterns {
                    for (name, value) in map {
                        if self.may_match(pattern, name)? {
                            self.schema(schema, value, depth)?;
                        }
                    }
                }
            }
            ("additionalProperties" | "unevaluatedProperties", schema) => {
                for (name, value) in map {
                    if !self.is_declared(name, siblings)? {
                        self.schema(schema, value, depth)?;
                    }
                }
            }
            ("propertyNames", schema) => {
                for name in map.keys() {
                    self.budget.make(name.len() as u64)?;
                    self.schema(schema, &Value::String(name.clone()), depth)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn array(
        &self,
        keyword: &str,
        operand: &Value,
        siblings: &Map<String, Value>,
        list: &[Value],
        depth: usize,
    ) -> Charged {
        let before = siblings.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        match (keyword, operand) {
            ("prefixItems", Value::Array(schemas)) => {
                schemas.iter().zip(list).try_for_each(|(schema, value)| self.schema(schema, value, depth))
            }
            ("items" | "unevaluatedItems", schema) => {
                list.iter().skip(before).try_for_each(|value| self.schema(schema, value, depth))
            }
            ("contains", schema) => list.iter().try_for_each(|value| self.schema(schema, value, depth)),
            _ => Ok(()),
        }
    }

    /// Whether the sibling `properties` or `patternProperties` cover the name.
    fn is_declared(&self, name: &str, siblings: &Map<String, Value>) -> Result<bool, Unchecked> {
        self.budget.step(1)?;
        if siblings.get("properties").is_some_and(|properties| properties.get(name).is_some()) {
            return Ok(true);
        }
        let Some(Value::Object(patterns)) = siblings.get("patternProperties") else { return Ok(false) };
        for pattern in patterns.keys() {
            if self.may_match(pattern, name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn matches(&self, pattern: &str, text: &str) -> Charged {
        let places = self.document.patterns.get(pattern).map_or(1, |pattern| pattern.places);
        let work = (text.len() as u64).saturating_mul(places.saturating_add(4));
        Ok(self.budget.step(1 + work / PLACES_PER_STEP)?)
    }

    fn may_match(&self, pattern: &str, name: &str) -> Result<bool, Unchecked> {
        self.matches(pattern, name)?;
        let regex = self.document.patterns.get(pattern).and_then(|Pattern { regex, .. }| regex.as_ref());
        Ok(regex.is_none_or(|regex| regex.is_match(name)))
    }
}
