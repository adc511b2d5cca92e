use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::expr::vars;

fn render(template: Value) -> Value {
    let mut scope = Scope::new(json!({"n": 2, "s": "x", "list": [1, "a"], "m": {"k": null}}));
    scope.set_run("run_1", "flow", 1);
    Template::compile(&template, vars::NODE).unwrap().render(&scope).unwrap()
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
            condition(text, vars::NODE).unwrap().eval_bool(&Scope::new(json!({"n": 2}))).unwrap(),
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
