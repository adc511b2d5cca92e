use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::expr::vars;

fn render(template: Value) -> Value {
    let mut scope = Scope::new(json!({"n": 2, "s": "x", "list": [1, "a"], "m": {"k": null}}));
    scope.set_run("run_1", "flow", 1, None);
    Template::compile(&template, vars::NODE).unwrap().render(&scope, &Budget::default()).unwrap()
}

#[test]
fn one_expression_keeps_its_type_and_text_is_joined() {
    for (template, expected) in [
        (json!("${{ input.n }}"), json!(2)),
        (json!("${{input.list}}"), json!([1, "a"])),
        (json!("${{ input.n }}\n"), json!(2)),
        (json!(" ${{ input.n }}"), json!(" 2")),
        (
            json!("a ${{ input.s }}-${{ input.n }} ${{ input.list }} ${{ input.m }}"),
            json!("a x-2 [1,\"a\"] {\"k\":null}"),
        ),
        (json!("$${{ input.n }}"), json!("${{ input.n }}")),
        (json!({"a": ["$${{ x }}"]}), json!({"a": ["${{ x }}"]})),
        (json!("cost: $5 {{ }} $ {"), json!("cost: $5 {{ }} $ {")),
        (json!("${{ {'a': {'b': input.n}} }}"), json!({"a": {"b": 2}})),
        (json!("${{ '}}' + \"'}}\\\"\" }}"), json!("}}'}}\"")),
        (
            json!({"a": [1, "${{ input.n }}", {"b": "${{ input.s }}"}], "c": null}),
            json!({"a": [1, 2, {"b": "x"}], "c": null}),
        ),
        (json!({"${{ input.n }}": 1}), json!({"${{ input.n }}": 1})),
    ] {
        assert_eq!(render(template.clone()), expected, "{template}");
    }
}

#[test]
fn constants_need_no_scope() {
    let constant = json!({"a": [1, {"b": "c"}]});
    assert_eq!(Template::compile(&constant, vars::NODE).unwrap().as_constant(), Some(&constant));
}

#[test]
fn all_problems_are_found_with_their_paths() {
    let error =
        Template::compile(&json!({"a": ["${{ x }}", "${{ 1"], "b": "${{ }}"}), vars::NODE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a[0]: unknown variable `x`\n  hint: available here: `input`, `nodes`, `run`\n\
         a[1]: `${{` without `}}`\n  hint: write `$${{` for a plain `${{`\n\
         b: the expression is empty"
    );
}

#[test]
fn conditions_come_with_or_without_braces() {
    for text in ["input.n > 1", "${{ input.n > 1 }}", " ${{ input.n > 1 }}\n"] {
        assert!(
            condition(text, vars::NODE)
                .unwrap()
                .eval_bool(&Scope::new(json!({"n": 2})), &Budget::default())
                .unwrap(),
            "{text}"
        );
    }
    assert!(condition("${{ true }} && ${{ false }}", vars::NODE).is_err());
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "(\\$|\\{|\\}|\\$\\{\\{|\\}\\}|'|\"|\\\\|a|é| ){0,20}") {
        let _ = Template::compile(&Value::String(text.clone()), vars::NODE);
        let _ = condition(&text, vars::NODE);
    }
}

#[test]
fn a_document_has_one_budget() {
    let scope = Scope::new(json!({"big": "x".repeat(10_000), "list": [[1, 2], {"a": "\u{1}"}]}));
    let rendered = |template: Value, bytes| {
        let budget = Budget::new(10_000, bytes);
        Template::compile(&template, vars::NODE).unwrap().render(&scope, &budget)
    };
    let pieces = json!("${{ input.big }} and ${{ input.big }}");
    let parts = json!({"a": ["${{ input.big }}", "${{ input.big }}"], "b": "${{ input.big + '' }}"});
    for template in [pieces, parts] {
        assert!(rendered(template.clone(), 60_000).is_ok(), "{template}");
        let error = rendered(template.clone(), 25_000).unwrap_err();
        assert_eq!(error.exceeded, Some(Exceeded::Bytes { max: 25_000 }), "{template}");
    }
    let constant = json!({"a": "y".repeat(10_000), "b": "${{ 1 }}"});
    let error = rendered(constant, 5_000).unwrap_err();
    assert_eq!(error.to_string(), "`template`: it makes more than 5000 bytes, the limit of an evaluation");
    assert_eq!(
        rendered(json!("= ${{ input.list }}"), 10_000).unwrap(),
        json!("= [[1,2],{\"a\":\"\\u0001\"}]")
    );
}

#[test]
fn text_of_a_value_is_paid_for() {
    let scope = Scope::new(json!({"list": vec!["\u{1}"; 1_000]}));
    let template = Template::compile(&json!("${{ input.list }}"), vars::NODE).unwrap();
    let text = template.render_text(&scope, &Budget::default()).unwrap();
    assert!(text.starts_with("[\"\\u0001\",\"\\u0001\""), "{text:.40}");
    let error = template.render_text(&scope, &Budget::new(10_000, 67_000)).unwrap_err();
    assert_eq!(error.exceeded, Some(Exceeded::Bytes { max: 67_000 }));
}
