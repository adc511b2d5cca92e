use serde_json::{Value, json};

use crate::Program;

fn compile(schema: &Value) -> Result<Program, switchyard_base::Diagnostics> {
    Program::compile_value(&json!({"name": "t", "input": schema, "nodes": {"a": {"type": "transform"}}}))
}

fn program(schema: &Value) -> Program {
    compile(schema).unwrap_or_else(|problems| panic!("{problems}"))
}

fn refusal(schema: &Value) -> String {
    compile(schema).unwrap_err().to_string()
}

fn misfit(schema: &Value, input: Value) -> String {
    program(schema).prepare_input(input).unwrap_err().to_string()
}

fn leads() -> Value {
    json!({
        "type": "object", "required": ["company"], "title": "anything", "additionalProperties": false,
        "properties": {
            "company": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
            "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 100},
            "mode": {"$ref": "#/$defs/mode"},
            "tags": {"type": ["array", "null"], "items": {"type": "string"}, "uniqueItems": true},
        },
        "$defs": {"mode": {"enum": ["a", "b"], "default": "b"}},
    })
}

#[test]
fn defaults_are_filled_in_also_through_references() {
    let input = program(&leads()).prepare_input(json!({"company": "x"})).unwrap();
    assert_eq!(input, json!({"company": "x", "limit": 10, "mode": "b"}));
    let nested = json!({
        "type": "object",
        "allOf": [{"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}}],
        "properties": {"list": {"prefixItems": [{"properties": {"c": {"default": 2}}}],
                                "items": {"properties": {"d": {"default": 3}}}}},
    });
    let input = program(&nested).prepare_input(json!({"list": [{}, {}, 1]})).unwrap();
    assert_eq!(input, json!({"list": [{"c": 2}, {"d": 3}, 1], "a": {"b": 1}}));
    assert_eq!(program(&nested).prepare_input(json!(null)).unwrap(), json!({"a": {"b": 1}}));
}

#[test]
fn wrong_inputs_are_refused_in_full() {
    let input = json!({"compny": "x", "limit": 0, "mode": "c", "tags": ["a", 1, "a"]});
    assert_eq!(
        misfit(&leads(), input),
        "input.limit: expected 1 or more, found 0\n\
         input.mode: not one of the allowed values\n  hint: allowed: \"a\", \"b\"\n\
         input.tags: expected items that differ, found two that are equal\n\
         input.tags[1]: expected string, found a number\n\
         input.compny: unknown field `compny`\n  hint: did you mean `company`?\n\
         input: missing `company`\n  hint: there is `compny`: did you mean `company`?"
    );
    assert_eq!(misfit(&leads(), json!(null)), "input: missing `company`");
    assert_eq!(misfit(&leads(), json!([])), "input: expected object, found a list");
    assert_eq!(
        misfit(&leads(), json!({"company": "A1", "limit": 1.5})),
        "input.company: expected text that matches `^[a-z]+$`, found \"A1\"\n\
         input.limit: expected integer, found a number"
    );
}

#[test]
fn alternatives_say_what_is_wrong_with_each() {
    let schema = json!({"properties": {"to": {"anyOf": [
        {"type": "string", "minLength": 3},
        {"type": "object", "required": ["id"]},
    ]}}});
    assert_eq!(
        misfit(&schema, json!({"to": "ab"})),
        "input.to: fits none of the alternatives\n  \
         hint: to expected 3 characters or more, found 2; or to expected object, found a string"
    );
    let digits = json!({"properties": {"7": {"items": {"const": 1}}}});
    assert_eq!(misfit(&digits, json!({"7": [1, 2]})), "input.7[1]: expected 1, found 2");
}

#[test]
fn bad_schemas_are_refused_in_full() {
    assert_eq!(
        refusal(&json!({"type": "strin", "required": 1, "properties": {"a": {"minLength": -1}}})),
        "input.properties.a.minLength: expected 0 or more, found -1\n\
         input.type: unknown type `strin`\n  hint: did you mean `string`?\n\
         input.required: expected a list of names"
    );
    assert_eq!(refusal(&json!([])), "input: expected a map, found a list");
}

#[test]
fn references_stay_within_the_schema() {
    assert_eq!(
        refusal(&json!({"properties": {"a": {"$ref": "https://example.com/a.json"}}})),
        "input.properties.a.$ref: `$ref: https://example.com/a.json` leads outside of the schema; nothing is loaded\n  \
         hint: copy what it leads to into `$defs` and refer to it as `#/$defs/…`"
    );
    assert_eq!(
        refusal(&json!({"$ref": "#/$defs/missing"})),
        "input.$ref: `#/$defs/missing` leads to no schema\n  \
         hint: put the schema into `$defs` and refer to it as `#/$defs/<name>`"
    );
    assert!(refusal(&json!({"$ref": "file:///etc/passwd"})).contains("leads outside of the schema"));
    assert!(
        refusal(&json!({"$schema": "http://json-schema.org/draft-07/schema#"}))
            .contains("is not the draft 2020-12")
    );
    let tree = json!({
        "$anchor": "tree", "type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer"}, "children": {"items": {"$ref": "#tree"}}},
    });
    let good = json!({"n": 1, "children": [{"n": 2, "children": []}]});
    assert_eq!(program(&tree).prepare_input(good.clone()).unwrap(), good);
    assert_eq!(
        misfit(&tree, json!({"n": 1, "children": [{"n": 2}, {"m": 3}]})),
        "input.children[1]: missing `n`"
    );
}

#[test]
fn patterns_are_linear_and_bounded() {
    let look_around = refusal(&json!({"properties": {"a": {"pattern": "(?=a)b"}}}));
    assert!(look_around.contains("input.properties.a.pattern:"), "{look_around}");
    assert!(look_around.contains("look-around and back-references are not supported"), "{look_around}");
    let large = refusal(&json!({"pattern": "(\\w{1000}){1000}"}));
    assert_eq!(large, "input.pattern: the pattern `(\\w{1000}){1000}` is too large");
    let slow = json!({"pattern": "^(a|b|ab)*c$"});
    assert_eq!(
        misfit(&slow, json!("ab".repeat(10_000_000))),
        "input: it cannot be checked: it takes more than 10000000 steps, the limit of an evaluation"
    );
}

#[test]
fn what_grows_with_every_level_is_stopped_before_it_is_tried() {
    let mut defs = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
    }
    defs.insert("l40".into(), json!({"type": "string"}));
    let schema = json!({"$ref": "#/$defs/l0", "$defs": defs});
    assert_eq!(
        misfit(&schema, json!(1)),
        "input: it cannot be checked: it takes more than 10000000 steps, the limit of an evaluation"
    );
    let endless = json!({"properties": {"a": {"$ref": "#", "default": {}}}});
    assert!(misfit(&endless, json!({})).contains("deeper than 512 levels"));
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert!(misfit(&circle, json!({})).contains("deeper than 512 levels"));
}

#[test]
fn the_deepest_input_that_is_checked_fits_the_stack() {
    let schema = json!({"properties": {"a": {"allOf": [{"$ref": "#"}]}}});
    let nested = |levels: usize| (0..levels).fold(json!({}), |inside, _| json!({ "a": inside }));
    assert!(program(&schema).prepare_input(nested(170)).is_ok());
    assert!(misfit(&schema, nested(200)).contains("deeper than 512 levels"));
    let strict = json!({"additionalProperties": {"$ref": "#"}, "maxProperties": 1});
    assert!(
        misfit(&strict, (0..200).fold(json!({"a": 1, "b": 2}), |v, _| json!({ "a": v })))
            .contains("fields or less")
    );
}

#[test]
fn large_inputs_are_stopped_before_they_fill_the_memory() {
    let items = json!({"properties": {"a": {"default": "x".repeat(1_000_000)}}});
    let schema = json!({"type": "array", "items": items});
    assert!(program(&schema).prepare_input(json!(vec![json!({}); 50])).is_ok());
    assert_eq!(
        misfit(&schema, json!(vec![json!({}); 3_000])),
        "input: it cannot be checked: it makes more than 134217728 bytes, the limit of an evaluation"
    );
    let allowed: Vec<u32> = (0..20_000).collect();
    let schema = json!({"type": "array", "items": {"enum": allowed}});
    assert!(program(&schema).prepare_input(json!(vec![19_999; 1_000])).is_ok());
    assert_eq!(
        misfit(&schema, json!(vec![19_999; 20_000])),
        "input: it cannot be checked: it takes more than 10000000 steps, the limit of an evaluation"
    );
    let wrong = misfit(&json!({"items": {"type": "string"}}), json!(vec![1; 1_500_000]));
    assert_eq!(wrong, "input[0]: expected string, found a number");
}

#[test]
fn a_stored_definition_keeps_the_rules_that_it_was_accepted_with() {
    let schema = json!({"properties": {"n": {"minimum": 5}}, "$ref": "https://example.com/x"});
    let definition = json!({"name": "t", "input": schema, "nodes": {"a": {"type": "transform"}}});
    assert!(Program::compile_value(&definition).is_err());
    let before = Program::from_canonical(&definition.to_string()).unwrap();
    assert_eq!(before.prepare_input(json!({"n": 1})).unwrap(), json!({"n": 1}));
    assert_eq!(&*before.canonical, definition.to_string());
    let today = program(&json!({"properties": {"n": {"minimum": 5}}}));
    assert!(today.canonical.contains(r#""input_draft":"2020-12""#), "{}", today.canonical);
    let again = Program::from_canonical(&today.canonical).unwrap();
    assert_eq!(again.hash, today.hash);
    assert!(again.prepare_input(json!({"n": 1})).is_err());
}
