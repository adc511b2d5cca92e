//! The rules of definitions that were accepted up to version 0.2: a small part of JSON Schema.
//!
//! Enforced: `type`, `required`, `properties`, `items`, `enum`, and `default` of properties. Other keywords were stored
//! but not enforced, so a stored schema may have anything in them. These rules never change.
//!
//! Checking has the budget of an evaluation: a list of empty maps and a large default make a large input, and every
//! element is compared with every value of an `enum`.

use serde_json::{Map, Value};
use switchyard_base::{Diagnostics, suggest};

use crate::expr::{self, Budget, Exceeded};
use crate::problem::{At, Problems};

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

#[derive(Debug, Default)]
pub(crate) struct Schema {
    types: Vec<String>,
    required: Vec<String>,
    properties: Vec<(String, Schema)>,
    items: Option<Box<Schema>>,
    allowed: Option<Vec<Value>>,
    default: Option<Value>,
}

impl Schema {
    pub(super) fn compile(schema: &Value, at: &At<'_>, problems: &mut Problems) -> Option<Self> {
        let Value::Object(map) = schema else {
            problems.add(at, format!("expected a map, found {}", expr::kind(schema)), None);
            return None;
        };
        Some(Self {
            types: types(map, &at.key("type"), problems),
            required: required(map, &at.key("required"), problems),
            properties: properties(map, &at.key("properties"), problems),
            items: map
                .get("items")
                .and_then(|items| Self::compile(items, &at.key("items"), problems))
                .map(Box::new),
            allowed: map.get("enum").and_then(Value::as_array).cloned(),
            default: map.get("default").cloned(),
        })
    }

    pub(super) fn prepare(&self, mut input: Value, budget: &Budget<'_>) -> Result<Value, Diagnostics> {
        if input.is_null()
            && let Some(default) = &self.default
        {
            input = default.clone();
        }
        // Without an input, the input is an empty object if the schema asks for an object.
        if input.is_null()
            && self.types.iter().any(|name| name == "object")
            && !self.types.iter().any(|name| name == "null")
        {
            input = Value::Object(Map::new());
        }
        let mut check = Check { problems: Problems::default(), budget };
        let at = At::Root.key("input");
        if let Err(exceeded) = self.fill_and_check(&mut input, &at, &mut check) {
            check.problems = Problems::default();
            check.problems.add(&at, format!("it cannot be checked: {exceeded}"), None);
        }
        check.problems.finish(None)?;
        Ok(input)
    }

    fn fill_and_check(&self, value: &mut Value, at: &At<'_>, check: &mut Check<'_>) -> Result<(), Exceeded> {
        check.budget.step(1)?;
        if !self.types.is_empty() && !self.types.iter().any(|name| is_type(value, name)) {
            let expected = self.types.join(" or ");
            check.problems.add(at, format!("expected {expected}, found {}", expr::kind(value)), None);
            return Ok(());
        }
        if let Some(allowed) = &self.allowed {
            check.budget.compare_json(value, allowed.len())?;
            if !allowed.contains(value) {
                let list: Vec<String> = allowed.iter().take(20).map(Value::to_string).collect();
                let hint = format!("allowed: {}", list.join(", "));
                check.problems.add(at, "not one of the allowed values", Some(hint));
            }
        }
        match value {
            Value::Object(map) => self.check_object(map, at, check)?,
            Value::Array(list) => {
                for (index, item) in list.iter_mut().enumerate() {
                    if let Some(items) = &self.items {
                        items.fill_and_check(item, &at.index(index), check)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_object(
        &self,
        map: &mut Map<String, Value>,
        at: &At<'_>,
        check: &mut Check<'_>,
    ) -> Result<(), Exceeded> {
        for (name, schema) in &self.properties {
            check.budget.step(1)?;
            if let (None, Some(default)) = (map.get(name), &schema.default) {
                check.budget.copy_json(default)?;
                map.insert(name.clone(), default.clone());
            }
            if let Some(value) = map.get_mut(name) {
                schema.fill_and_check(value, &at.key(name), check)?;
            }
        }
        for name in &self.required {
            check.budget.step(1)?;
            if map.contains_key(name) {
                continue;
            }
            let near = match check.problems.is_full() {
                true => None,
                false => suggest::nearest(name, map.keys().map(String::as_str)),
            };
            let hint = near.map(|near| format!("there is `{near}`: did you mean `{name}`?"));
            check.problems.add(at, format!("missing `{name}`"), hint);
        }
        Ok(())
    }
}

/// The state of one check of an input.
struct Check<'b> {
    problems: Problems,
    budget: &'b Budget<'b>,
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    }
}

fn types(map: &Map<String, Value>, at: &At<'_>, problems: &mut Problems) -> Vec<String> {
    let names: Vec<&Value> = match map.get("type") {
        None => return Vec::new(),
        Some(Value::Array(list)) => list.iter().collect(),
        Some(one) => vec![one],
    };
    let mut types = Vec::new();
    for name in names {
        match name.as_str() {
            Some(name) if TYPES.contains(&name) => types.push(name.to_owned()),
            other => {
                let hint = suggest::hint(other.unwrap_or_default(), &TYPES, "known types");
                problems.add(at, format!("unknown type {name}"), hint);
            }
        }
    }
    types
}

fn required(map: &Map<String, Value>, at: &At<'_>, problems: &mut Problems) -> Vec<String> {
    let Some(required) = map.get("required") else { return Vec::new() };
    let names: Option<Vec<String>> = required
        .as_array()
        .and_then(|list| list.iter().map(|name| name.as_str().map(str::to_owned)).collect());
    names.unwrap_or_else(|| {
        problems.add(at, "expected a list of names", None);
        Vec::new()
    })
}

fn properties(map: &Map<String, Value>, at: &At<'_>, problems: &mut Problems) -> Vec<(String, Schema)> {
    let Some(properties) = map.get("properties") else { return Vec::new() };
    let Value::Object(properties) = properties else {
        problems.add(at, "expected a map of schemas", None);
        return Vec::new();
    };
    let compiled = properties.iter().filter_map(|(name, schema)| {
        Schema::compile(schema, &at.key(name), problems).map(|schema| (name.clone(), schema))
    });
    compiled.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Program;

    fn program() -> Program {
        stored(&json!({
            "name": "t",
            "input": {
                "type": "object", "required": ["company"], "title": "anything",
                "properties": {
                    "company": {"type": "string"},
                    "limit": {"type": "integer", "default": 10},
                    "mode": {"enum": ["a", "b"]},
                    "tags": {"type": ["array", "null"], "items": {"type": "string"}},
                },
            },
            "nodes": {"a": {"type": "transform"}},
        }))
        .unwrap()
    }

    /// A definition as an archive holds it: without an input draft.
    fn stored(definition: &serde_json::Value) -> Result<Program, switchyard_base::Diagnostics> {
        Program::from_canonical(&definition.to_string())
    }

    #[test]
    fn defaults_are_filled_in() {
        let input = program().prepare_input(json!({"company": "x"})).unwrap();
        assert_eq!(input, json!({"company": "x", "limit": 10}));
    }

    #[test]
    fn wrong_inputs_are_refused_in_full() {
        let input = json!({"compny": "x", "limit": 1.5, "mode": "c", "tags": ["a", 1]});
        assert_eq!(
            program().prepare_input(input).unwrap_err().to_string(),
            "input.limit: expected integer, found a number\n\
             input.mode: not one of the allowed values\n  hint: allowed: \"a\", \"b\"\n\
             input.tags[1]: expected string, found a number\n\
             input: missing `company`\n  hint: there is `compny`: did you mean `company`?"
        );
        let error = program().prepare_input(json!(null)).unwrap_err();
        assert_eq!(error.to_string(), "input: missing `company`");
        assert_eq!(
            program().prepare_input(json!([])).unwrap_err().to_string(),
            "input: expected object, found a list"
        );
    }

    #[test]
    fn bad_schemas_are_refused() {
        let value = json!({"name": "t", "input": {"type": "strin", "required": 1, "properties": []}, "nodes": {"a": {"type": "transform"}}});
        assert_eq!(
            stored(&value).unwrap_err().to_string(),
            "input.type: unknown type \"strin\"\n  hint: did you mean `string`?\n\
             input.required: expected a list of names\n\
             input.properties: expected a map of schemas"
        );
    }

    fn with_schema(schema: &serde_json::Value) -> Program {
        let value = json!({"name": "t", "input": schema, "nodes": {"a": {"type": "transform"}}});
        stored(&value).unwrap()
    }

    #[test]
    fn a_default_for_many_items_is_stopped_before_it_fills_the_memory() {
        let items = json!({"properties": {"a": {"default": "x".repeat(1_000_000)}}});
        let program = with_schema(&json!({"type": "array", "items": items}));
        assert!(program.prepare_input(json!(vec![json!({}); 50])).is_ok());
        assert_eq!(
            program.prepare_input(json!(vec![json!({}); 3_000])).unwrap_err().to_string(),
            "input: it cannot be checked: it makes more than 134217728 bytes, the limit of an evaluation"
        );
    }

    #[test]
    fn many_items_times_many_allowed_values_are_stopped() {
        let allowed: Vec<u32> = (0..20_000).collect();
        let program = with_schema(&json!({"type": "array", "items": {"enum": allowed}}));
        assert!(program.prepare_input(json!(vec![19_999; 1_000])).is_ok());
        assert_eq!(
            program.prepare_input(json!(vec![19_999; 20_000])).unwrap_err().to_string(),
            "input: it cannot be checked: it takes more than 10000000 steps, the limit of an evaluation"
        );
    }
}
