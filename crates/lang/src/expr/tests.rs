use proptest::prelude::*;
use serde_json::json;

use super::*;

mod budgets;
mod reference;

fn scope() -> Scope {
    let mut scope = Scope::new(json!({
        "n": 2, "price": 10, "f": 1.5, "big": u64::MAX, "name": "Ada", "list": [1, 2, 3],
        "z": {"b": 1, "a": 2}, "null": null, "risk": 1
    }));
    scope.set_run("run_1", "flow", 1, None);
    let output = json!({"risk": 0.8, "body": {"items": ["x", "y"]}});
    scope.set_node("a", NodeView { status: "succeeded".into(), output, error: Value::Null });
    scope.set_node("my-node", NodeView { status: "succeeded".into(), output: json!(7), error: Value::Null });
    scope
}

fn eval(source: &str) -> Value {
    Expr::compile(source, vars::NODE)
        .unwrap_or_else(|e| panic!("{source}: {e:?}"))
        .eval(&scope(), &Budget::default())
        .unwrap()
}

fn fails(source: &str) -> String {
    Expr::compile(source, vars::NODE).unwrap().eval(&scope(), &Budget::default()).unwrap_err().to_string()
}

fn refused(source: &str) -> (String, String) {
    let error = Expr::compile(source, vars::NODE).unwrap_err();
    (error.message, error.hint.unwrap_or_default())
}

#[test]
fn values_keep_their_types() {
    for (source, expected) in [
        ("input.n", json!(2)),
        ("input.n + 1", json!(3)),
        ("input.f", json!(1.5)),
        ("input.big", json!(u64::MAX)),
        ("input.list.map(x, x * 2)", json!([2, 4, 6])),
        ("input.list[1]", json!(2)),
        ("input.list.filter(x, x > 1)", json!([2, 3])),
        ("nodes.a.output.body.items", json!(["x", "y"])),
        ("nodes[\"my-node\"].output", json!(7)),
        ("nodes['my-node'].output + 1", json!(8)),
        ("run.name", json!("flow")),
        ("'hi ' + input.name", json!("hi Ada")),
        ("{'b': 1, 'a': [true, null]}", json!({"a": [true, null], "b": 1})),
        ("has(input.missing) ? 1 : 2", json!(2)),
        ("input.?missing.orValue('x')", json!("x")),
        ("size(input.list) == 3 && input.name.startsWith('A')", json!(true)),
        ("duration('90s')", json!("1m30s")),
        ("timestamp('2026-01-01T00:00:00Z')", json!("2026-01-01T00:00:00+00:00")),
        ("math.greatest(1, 3)", json!(3)),
        ("'A,B'.lowerAscii().split(',')", json!(["a", "b"])),
        ("type(input.n) == int", json!(true)),
        ("input.list.exists(nodes, nodes == 2)", json!(true)),
    ] {
        assert_eq!(eval(source), expected, "{source}");
    }
    assert_eq!(eval("input.z").to_string(), r#"{"b":1,"a":2}"#, "a plain path keeps the order of keys");
}

#[test]
fn integers_and_floats_mix_as_in_json() {
    for (source, expected) in [
        ("nodes.a.output.risk > 0.7", json!(true)),
        ("nodes.a.output.risk > 1", json!(false)),
        ("input.risk > 0.7", json!(true)),
        ("input.risk == 1.0", json!(true)),
        ("input.big > 1", json!(true)),
        ("input.price * 1.2", json!(12.0)),
        ("1.5 + input.n", json!(3.5)),
        ("input.n - input.f", json!(0.5)),
        ("input.list.map(x, x / 2.0)", json!([0.5, 1.0, 1.5])),
        ("5 / 2", json!(2)),
    ] {
        assert_eq!(eval(source), expected, "{source}");
    }
}

#[test]
fn failures_name_the_expression_and_the_reason() {
    for (source, expected) in [
        ("input.missing.x", "`input.missing.x`: no such key: `missing`"),
        ("input.missing + 1", "`input.missing + 1`: no such key: `missing`"),
        ("input.name.x", "`input.name.x`: no such key: `x` (of a string)"),
        ("input.list[9]", "`input.list[9]`: index 9 is out of bounds: the list has 3 elements"),
        ("input.name + 1", "`input.name + 1`: `+` cannot be used with string and int"),
        ("input.name > 1", "`input.name > 1`: `>` cannot be used with string and int"),
        ("1 / 0", "`1 / 0`: division by zero"),
        (
            "9223372036854775807 + input.n",
            "`9223372036854775807 + input.n`: the result is too large for an integer",
        ),
        ("1.0 / 0.0", "`1.0 / 0.0`: the result is inf, which JSON cannot carry"),
        ("nodes.later.output", "`nodes.later.output`: node `later` has not ended"),
        ("int('x')", "`int('x')`: `int`: string parse error: invalid digit found in string"),
    ] {
        assert_eq!(fails(source), expected, "{source}");
    }
    let error =
        Expr::compile("input.n", vars::NODE).unwrap().eval_bool(&scope(), &Budget::default()).unwrap_err();
    assert_eq!(error.to_string(), "`input.n`: a condition must be true or false, not a number");
}

#[test]
fn bad_expressions_are_refused_when_compiled() {
    for (source, message, hint) in [
        ("", "the expression is empty", ""),
        ("inptu.x", "unknown variable `inptu`", "did you mean `input`?"),
        ("item.x", "unknown variable `item`", "available here: `input`, `nodes`, `run`"),
        (
            "nodes[input.k]",
            "`nodes` must be followed by the id of a node",
            "write `nodes.<id>` or `nodes[\"<id>\"]` with the id as it is in the definition",
        ),
        (
            "size(nodes)",
            "`nodes` must be followed by the id of a node",
            "write `nodes.<id>` or `nodes[\"<id>\"]` with the id as it is in the definition",
        ),
        (
            "nodes.my-node.output",
            "unknown variable `node`",
            "an id with a dash is written `nodes[\"my-node\"]`",
        ),
        ("szie(input.list)", "unknown function `szie`", "did you mean `size`?"),
        ("input.name.startWith('A')", "unknown function `startWith`", "did you mean `startsWith`?"),
        ("Foo{a: 1}", "unknown type `Foo`", ""),
    ] {
        assert_eq!(refused(source), (message.to_owned(), hint.to_owned()), "{source}");
    }
    assert!(refused("input.").0.starts_with("bad expression: "), "{:?}", refused("input."));
    assert!(refused("1 +* 2").0.starts_with("bad expression: "), "{:?}", refused("1 +* 2"));
}

#[test]
fn references_are_known() {
    let expr = Expr::compile("nodes.a.output + nodes['b-c'].output + input.x", vars::NODE).unwrap();
    let Refs { vars, nodes, .. } = expr.refs();
    assert_eq!(
        (vars.as_slice(), nodes.as_slice()),
        (&["input"][..], &["a".to_owned(), "b-c".to_owned()][..])
    );
    let expr = Expr::compile("has(nodes.a.output.x) && nodes.?b.hasValue()", vars::NODE).unwrap();
    assert_eq!(expr.refs().nodes, ["a", "b"]);
    assert_eq!(Expr::compile("item.x", vars::MAP_INPUT).unwrap().refs().vars, ["item"]);
}

#[test]
fn only_what_may_read_the_schedule_says_so() {
    let reads = |source| Expr::compile(source, vars::NODE).unwrap().refs().schedule;
    for source in
        ["run.scheduled_at", "run", "run['scheduled_at']", "{'r': run}", "string(run . scheduled_at)"]
    {
        assert!(reads(source), "{source}");
    }
    for source in ["run.id", "run.name + run . attempt", "input.run", "input.running", "'run'"] {
        assert!(!reads(source), "{source}");
    }
}

#[test]
fn deep_expressions_are_refused_on_a_small_stack() {
    let work = || {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{'a':", "}"),
            ("!", ""),
            ("-", ""),
            ("- ", ""),
            ("f(", ")"),
            ("true ? ", " : 1"),
        ] {
            for depth in [40, 500, 1300] {
                let source = format!("{}1{}", open.repeat(depth), close.repeat(depth));
                assert!(Expr::compile(&source, vars::NODE).is_err(), "{open} {depth}");
            }
        }
        for link in [" + 1", ".a", "[0]", ".map(x, x)", " && true", " == 1", " in [1]"] {
            for depth in [5, 40, 800] {
                let source = format!("input.n{}", link.repeat(depth));
                if let Ok(expr) = Expr::compile(&source, vars::NODE) {
                    let _ = expr.eval(&scope(), &Budget::default());
                }
            }
        }
        assert!(Expr::compile(&"1 + ".repeat(5000), vars::NODE).is_err());
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(source in ".{0,60}") {
        if let Ok(expr) = Expr::compile(&source, vars::NODE) {
            let _ = expr.eval(&scope(), &Budget::default());
        }
    }

    #[test]
    fn any_expression_like_text_is_answered(source in "(input|nodes|\\.a|\\.n|\\[|\\]|\\(|\\)|\\{|\\}|'|\"|1|2\\.5|u|\\+|-|\\*|/|%|\\?|:|,|&&|\\|\\||==|<| |in|size|map|x|has|\\\\|!|duration|timestamp|matches|b'|r'){0,14}") {
        if let Ok(expr) = Expr::compile(&source, vars::NODE) {
            let _ = expr.eval(&scope(), &Budget::default());
        }
    }

    #[test]
    fn json_survives_a_path(number: i64, float in -1e15f64..1e15, text in ".{0,20}") {
        let value = json!({"a": [number, float, text]});
        let expr = Expr::compile("input.a + []", vars::NODE).unwrap();
        prop_assert_eq!(expr.eval(&Scope::new(value.clone()), &Budget::default()).unwrap(), value["a"].clone());
    }
}
