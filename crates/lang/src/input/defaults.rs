//! Defaults of properties that an input leaves out.
//!
//! A default is taken from a property's own schema, or from the one that its `$ref` leads to. The search follows
//! `properties`, `items`, `prefixItems`, `allOf` and `$ref`, which apply to every input. An alternative (`anyOf`,
//! `oneOf`, `if`) fills in nothing, because the matching alternative is known only afterwards.

use serde_json::{Map, Value};

use super::cost::{DEPTH_MAX, Unchecked};
use super::document::{Document, reference};
use crate::expr::Budget;

/// How long a chain of references to a default may be.
const REFERENCES_MAX: usize = 32;

pub(super) struct Defaults<'a> {
    pub(super) document: &'a Document,
    pub(super) budget: &'a Budget<'a>,
}

impl Defaults<'_> {
    pub(super) fn fill(&self, value: &mut Value) -> Result<(), Unchecked> {
        self.schema(&self.document.root, value, 0)
    }

    fn schema(&self, schema: &Value, value: &mut Value, depth: usize) -> Result<(), Unchecked> {
        self.budget.step(1)?;
        if depth > DEPTH_MAX {
            return Err(Unchecked::TooDeep);
        }
        let depth = depth + 1;
        if let Some(target) = reference(schema).and_then(|reference| self.document.resolve(reference)) {
            self.schema(target, value, depth)?;
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.schema(part, value, depth)?;
        }
        match value {
            Value::Object(map) => self.object(schema, map, depth),
            Value::Array(list) => self.array(schema, list, depth),
            _ => Ok(()),
        }
    }

    fn object(&self, schema: &Value, map: &mut Map<String, Value>, depth: usize) -> Result<(), Unchecked> {
        let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
        for (name, schema) in properties {
            self.budget.step(1)?;
            if let (false, Some(default)) = (map.contains_key(name), self.document.default_of(schema)) {
                self.budget.copy_json(default)?;
                map.insert(name.clone(), default.clone());
            }
            if let Some(value) = map.get_mut(name) {
                self.schema(schema, value, depth)?;
            }
        }
        Ok(())
    }

    fn array(&self, schema: &Value, list: &mut [Value], depth: usize) -> Result<(), Unchecked> {
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = schema.get("items");
        for (index, value) in list.iter_mut().enumerate() {
            if let Some(schema) = first.get(index).or(rest) {
                self.schema(schema, value, depth)?;
            }
        }
        Ok(())
    }
}

impl Document {
    pub(super) fn default_of<'d>(&'d self, schema: &'d Value) -> Option<&'d Value> {
        let mut schema = schema;
        for _ in 0..REFERENCES_MAX {
            if let Some(default) = schema.get("default") {
                return Some(default);
            }
            schema = self.resolve(reference(schema)?)?;
        }
        None
    }
}
