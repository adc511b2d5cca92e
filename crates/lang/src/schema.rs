//! The JSON Schema of a definition, for editors.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::spec::{
    CommandSpec, CommonSpec, CompensateCommon, CompensateSpec, Definition, FunctionSpec, HitlSpec, HttpSpec,
    LoopSpec, MapSpec, NodeSpec, SleepSpec, TransformSpec, WaitSpec, WorkflowSpec,
};

/// The JSON Schema of a workflow definition, draft 2020-12.
pub fn json_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Definition>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "Switchyard workflow".into());
    }
    schema
}

impl JsonSchema for NodeSpec {
    fn schema_name() -> Cow<'static, str> {
        "Node".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        one_of_kinds(CommonSpec::json_schema(generator), generator)
    }
}

impl JsonSchema for CompensateSpec {
    fn schema_name() -> Cow<'static, str> {
        "Compensation".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        one_of_kinds(CompensateCommon::json_schema(generator), generator)
    }
}

/// One flat object schema a kind: flattening an enum with `additionalProperties: false` is beyond the derive.
fn one_of_kinds(common: Schema, generator: &mut SchemaGenerator) -> Schema {
    let kinds = [
        ("http", HttpSpec::json_schema(generator)),
        ("function", FunctionSpec::json_schema(generator)),
        ("command", CommandSpec::json_schema(generator)),
        ("transform", TransformSpec::json_schema(generator)),
        ("sleep", SleepSpec::json_schema(generator)),
        ("wait", WaitSpec::json_schema(generator)),
        ("hitl", HitlSpec::json_schema(generator)),
        ("map", MapSpec::json_schema(generator)),
        ("loop", LoopSpec::json_schema(generator)),
        ("workflow", WorkflowSpec::json_schema(generator)),
    ];
    let variants: Vec<Value> = kinds.into_iter().map(|(name, own)| kind(name, own, &common)).collect();
    json_schema!({ "oneOf": variants })
}

fn kind(name: &str, own: Schema, common: &Schema) -> Value {
    let properties_of =
        |schema: &Schema| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut properties = Map::from_iter([("type".to_owned(), json!({ "const": name }))]);
    properties.extend(properties_of(&own));
    properties.extend(properties_of(common));
    let mut required = vec![json!("type")];
    required.extend(own.get("required").and_then(Value::as_array).cloned().unwrap_or_default());
    let mut schema = json!({
        "title": name,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if let (Some(description), Some(object)) = (own.get("description"), schema.as_object_mut()) {
        object.insert("description".into(), description.clone());
    }
    if let (Some(one_of), Some(object)) = (exactly_one(name), schema.as_object_mut()) {
        object.insert("oneOf".into(), one_of);
    }
    schema
}

/// Fields of which a kind needs exactly one.
fn exactly_one(kind: &str) -> Option<Value> {
    let fields: &[&str] = match kind {
        "map" | "loop" | "workflow" => &["nodes", "workflow", "definition", "file"],
        "sleep" => &["duration", "until"],
        _ => return None,
    };
    Some(fields.iter().map(|field| json!({ "required": [field] })).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::KindSpec;

    #[test]
    fn every_field_of_every_kind_is_described() {
        let schema = super::json_schema();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["title"], "Switchyard workflow");
        let variants = schema["$defs"]["Node"]["oneOf"].as_array().unwrap();
        let names: Vec<&str> =
            variants.iter().map(|v| v["properties"]["type"]["const"].as_str().unwrap()).collect();
        assert_eq!(names, KindSpec::NAMES);
        for variant in variants {
            assert_eq!(variant["additionalProperties"], false);
            for (name, property) in variant["properties"].as_object().unwrap() {
                let described = name == "type" || property.to_string().contains("\"description\"");
                assert!(described, "{name} of {} has no description: {property}", variant["title"]);
            }
            for field in [
                "needs",
                "when",
                "join",
                "input",
                "retry",
                "timeout",
                "priority",
                "cache",
                "on_error",
                "compensate",
            ] {
                assert!(variant["properties"].get(field).is_some(), "{field} of {}", variant["title"]);
            }
        }
    }

    /// What a canonical definition contains must be in the schema: it is written from the same structs.
    #[test]
    fn the_schema_knows_what_definitions_contain() {
        let program = crate::Program::compile_text("t", crate::compile::EVERY_KIND.as_bytes()).unwrap();
        let schema = super::json_schema();
        let variants = schema["$defs"]["Node"]["oneOf"].as_array().unwrap();
        let definition: Value = serde_json::from_str(&program.canonical).unwrap();
        for (id, node) in definition["nodes"].as_object().unwrap() {
            let variant = variants.iter().find(|v| v["properties"]["type"]["const"] == node["type"]).unwrap();
            for field in node.as_object().unwrap().keys() {
                assert!(variant["properties"].get(field).is_some(), "{field} of {id}");
            }
            for field in variant["required"].as_array().unwrap() {
                assert!(node.get(field.as_str().unwrap()).is_some(), "{field} of {id}");
            }
        }
        for field in definition.as_object().unwrap().keys() {
            assert!(schema["properties"].get(field).is_some(), "{field}");
        }
    }

    #[test]
    fn durations_are_patterns() {
        assert_eq!(super::json_schema()["$defs"]["Duration"]["pattern"], switchyard_base::DURATION_PATTERN);
    }
}
