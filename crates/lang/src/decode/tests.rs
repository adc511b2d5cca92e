use proptest::prelude::*;
use serde_json::json;

use crate::Program;

fn error(text: &str) -> String {
    Program::compile_text("f.yaml", text.as_bytes()).unwrap_err().to_string()
}

/// One node `a` with these fields, indented by four.
fn node(fields: &str) -> String {
    format!("name: t\nnodes:\n  a:\n    {}\n", fields.replace('\n', "\n    "))
}

#[test]
fn bad_documents_are_told_exactly() {
    for (text, expected) in [
        ("[]", "f.yaml:1:1: expected a map, found a list"),
        ("hello", "f.yaml:1:1: expected a map, found a string"),
        ("{}", "f.yaml:1:1: missing field `name`\nf.yaml:1:1: missing field `nodes`"),
        ("name: t\nnodes: []", "f.yaml:2:8: expected a map, found a list"),
        ("name: t\nnodes: {}", "f.yaml:2:1: a workflow needs at least one node"),
        ("name: 5\nnodes: {a: {type: transform}}", "f.yaml:1:7: expected a string, found a number"),
        (
            "name: t t\nnodes: {a: {type: transform}}",
            "f.yaml:1:7: `t t` is not a name\n  hint: a name is made of letters, digits, `_`, `-`, `.` and `/`, at most 128",
        ),
        (
            "name: t\nnodes: {1a: {type: transform}}",
            "f.yaml:2:9: `1a` is not a node id\n  hint: an id is a letter or `_`, then letters, digits, `_` and `-`, at most 64 in all",
        ),
        (
            "name: t\nndoes: {}\nnodes: {a: {type: transform}}",
            "f.yaml:2:1: unknown field `ndoes`\n  hint: did you mean `nodes`?",
        ),
        (
            "name: t\nparallelism: 0\nnodes: {a: {type: transform}}",
            "f.yaml:2:14: expected a whole number from 1 to 4294967295, found 0",
        ),
        (
            "name: t\nconcurrency: {key: \"${{ nodes.a }}\", limit: 1}\nnodes: {a: {type: transform}}",
            "f.yaml:2:20: unknown variable `nodes`\n  hint: available here: `input`",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn bad_nodes_are_told_exactly() {
    let mut wrong = Vec::new();
    for (fields, expected) in [
        ("needs: []", "f.yaml:3:3: missing field `type`"),
        ("type: htp", "f.yaml:4:11: unknown node type `htp`\n  hint: did you mean `http`?"),
        (
            "type: agent",
            "f.yaml:4:11: unknown node type `agent`\n  hint: known types: `http`, `function`, `command`, `transform`, `sleep`, `wait`, `hitl`, `map`, `loop`, `workflow`",
        ),
        (
            "type: transform\ntiemout: 3s",
            "f.yaml:5:5: unknown field `tiemout`\n  hint: did you mean `timeout`?",
        ),
        (
            "type: transform\ntimeout: 30",
            "f.yaml:5:14: `30` is not a duration\n  hint: add a unit: `30s` or `30ms`",
        ),
        (
            "type: transform\ntimeout: soon",
            "f.yaml:5:14: `soon` is not a duration\n  hint: write a number and a unit, such as `500ms`, `30s`, `2h`, `1h30m` or `7d`",
        ),
        ("type: transform\nneeds: [b]", "f.yaml:5:13: unknown node `b`\n  hint: nodes: `a`"),
        (
            "type: transform\nneeds: [a]",
            "f.yaml:5:5: the nodes wait for each other in a cycle: a → a\n  hint: remove one of these needs",
        ),
        ("type: transform\npriority: 11", "f.yaml:5:15: expected a whole number from 1 to 10, found 11"),
        ("type: transform\njoin: al", "f.yaml:5:11: unknown value `al`\n  hint: did you mean `all`?"),
        (
            "type: transform\nretry: {max: 1s, backof: fixed}",
            "f.yaml:5:22: unknown field `backof`\n  hint: did you mean `backoff`?",
        ),
        (
            "type: transform\nretry: {initial: 5s, max: 1s}",
            "f.yaml:5:31: `max` is shorter than `initial`\n  hint: raise `max` or lower `initial`",
        ),
        ("type: transform\non_error: {goto: b}", "f.yaml:5:22: unknown node `b`\n  hint: nodes: `a`"),
        (
            "type: transform\non_error: goto",
            "f.yaml:5:15: `goto` needs the node to go to\n  hint: write `{ goto: <node> }`",
        ),
        ("type: transform\nwhen: input.x >", "f.yaml:5:11: bad expression"),
        (
            "type: transform\nwhen: \"${{ inptu.x }}\"",
            "f.yaml:5:11: unknown variable `inptu`\n  hint: did you mean `input`?",
        ),
        (
            "type: transform\nvalue: {x: [\"${{ nodes.b.output }}\"]}",
            "f.yaml:5:17: unknown node `b`\n  hint: nodes: `a`",
        ),
        (
            "type: transform\nvalue: ${{ nodes.a.output }}",
            "f.yaml:5:12: `a` reads `a`, which need not have ended by then\n  hint: a node cannot read its own output",
        ),
        (
            "type: transform\ncompensate: {type: transform, needs: [a]}",
            "f.yaml:5:35: unknown field `needs`\n  hint: a compensation has no place of its own in the graph",
        ),
        (
            "type: http\nurl: http://x",
            "f.yaml:3:3: missing field `request`\n  hint: write `url` inside of it: `request: { url: … }`",
        ),
        ("type: transform\nwhen: \"{{ input.x }}\"", "f.yaml:5:11: bad expression"),
        (
            "type: transform\nvalue: {a: \"Dear {{ input.name }}\"}",
            "f.yaml:5:16: `{{ input.name }}` is plain text, not an expression\n  hint: write `${{ … }}`, or `${{ '{{ input.name }}' }}` for that text",
        ),
        (
            "type: transform\nvalue: \"${ nodes.b.output }\"",
            "f.yaml:5:12: `${ nodes.b.output }` is plain text, not an expression\n  hint: write `${{ … }}`, or `${{ '${ nodes.b.output }' }}` for that text",
        ),
        (
            "type: transform\nvalue: ${{ run.scheduled }}",
            "f.yaml:5:12: `run` has no field `scheduled`\n  hint: did you mean `scheduled_at`?",
        ),
        (
            "type: http\nrequest: {url: http://x}\nmethod: GET",
            "f.yaml:6:5: unknown field `method`\n  hint: write it as `request: { method: … }`",
        ),
        (
            "type: http\nrequest: {method: get, url: x}",
            "f.yaml:5:23: unknown value `get`\n  hint: did you mean `GET`?",
        ),
        (
            "type: http\nrequest: {url: example.com}",
            "f.yaml:5:20: `example.com` is not a URL\n  hint: start it with `https://` or `http://`",
        ),
        ("type: command\ncommand: []", "f.yaml:5:14: `command` needs at least the program"),
        ("type: sleep", "f.yaml:3:3: a `sleep` needs either `duration` or `until`"),
        (
            "type: sleep\nduration: 5 minutes",
            "f.yaml:5:15: `5 minutes` is not a duration\n  hint: write a number and a unit, such as `500ms`, `30s`, `2h`, `1h30m` or `7d`",
        ),
        (
            "type: sleep\nuntil: tomorrow",
            "f.yaml:5:12: `tomorrow` is not a time such as `2026-01-31T12:00:00Z`",
        ),
        (
            "type: hitl\non_timeout: approve",
            "f.yaml:5:17: `on_timeout` does nothing without `timeout`\n  hint: add a `timeout`",
        ),
        (
            "type: map\nitems: 5\nworkflow: w",
            "f.yaml:5:12: `items` is not a list\n  hint: write a list or an expression that gives one",
        ),
        (
            "type: map\nitems: []",
            "f.yaml:3:3: the node has no child workflow\n  hint: give one of `nodes`, `workflow`, `definition` or `file`",
        ),
        (
            "type: workflow\nworkflow: w\nnodes: {x: {type: transform}}",
            "f.yaml:5:15: `workflow` and `nodes` cannot be given together",
        ),
        (
            "type: workflow\nworkflow: w\noutput: 1",
            "f.yaml:6:13: `output` goes with `nodes`, not with `workflow`",
        ),
        (
            "type: workflow\nnodes: {x: {type: transfrm}}",
            "f.yaml:5:23: unknown node type `transfrm`\n  hint: did you mean `transform`?",
        ),
        (
            "type: workflow\nnodes: {x: {type: transform, value: \"${{ nodes.a.output }}\"}}",
            "f.yaml:5:41: unknown node `a`\n  hint: nodes: `x`",
        ),
        (
            "type: loop\nuntil: item > 1\nworkflow: w",
            "f.yaml:5:12: unknown variable `item`\n  hint: available here: `input`, `nodes`, `run`, `output`, `iteration`",
        ),
        (
            "type: loop\nuntil: iteration > 1\nmax_iterations: 10001\nworkflow: w",
            "f.yaml:6:21: expected a whole number from 1 to 10000, found 10001",
        ),
    ] {
        let found = error(&node(fields));
        // Text after the first problem, and the parser's own wording, may change.
        let whole = found == expected
            || found.starts_with(&format!("{expected}\nf.yaml"))
            || expected.ends_with("bad expression");
        if !(found.starts_with(expected) && whole) {
            wrong.push(format!("{fields}\n found: {found}\n expected: {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn hints_name_what_other_languages_write() {
    let hint =
        |text: &str| Program::compile_text("f.yaml", text.as_bytes()).unwrap_err().first().hint.clone();
    let when = |condition: &str| hint(&node(&format!("type: transform\nwhen: '{condition}'"))).unwrap();
    assert_eq!(when("input.a = 1"), "values are compared with `==`");
    assert_eq!(when("input.a == \"=\" and input.b"), "conditions are combined with `&&`, `||` and `!`");
    assert_eq!(
        when("{{ input.x }}"),
        "an expression is written `${{ … }}`, or without any braces in `when` and `until`"
    );
    assert_eq!(when("${ input.x }"), "an expression has two braces: `${{ … }}`");
    assert_eq!(
        hint("name: t\nnodes:\n  a: {type: transform, value: ${{ input.x }}}\n").unwrap(),
        "put an expression inside `{ }` or `[ ]` in quotes: `\"${{ … }}\"`"
    );
    assert_eq!(
        error("base: &b {type: transform}\nname: t\nnodes:\n  a:\n    <<: *b\n"),
        "f.yaml:5:5: merge keys (`<<`) are not supported\n  \
         hint: write the fields out, or give the whole value an anchor and use its alias"
    );
}

#[test]
fn plain_text_with_braces_is_left_alone() {
    for text in
        ["{{ name }}", "${HOME}/x", "{{#each inputs}}", "a{{b", "{{ inputs.x }}", "${{ '{{ input.x }}' }}"]
    {
        let value = json!({"name": "t", "nodes": {"a": {"type": "transform", "value": text}}});
        assert!(Program::compile_value(&value).is_ok(), "{text}");
    }
}

#[test]
fn fields_that_cannot_exist_are_found_where_the_shape_is_known() {
    let text = r#"
name: t
input: {type: object, additionalProperties: false, properties: {company: {type: string}}}
nodes:
  call: {type: http, request: {url: "https://x"}}
  ask: {type: hitl}
  use:
    type: transform
    needs: [call, ask]
    when: nodes.ask.output.decison == "approved" && run.attempt > 0
    value:
      - "${{ nodes.call.outptu }}"
      - "${{ nodes.call.output.boddy.x }}"
      - "${{ nodes.call.error.cod }} ${{ input.compny }}"
      - "${{ has(run.scheduled) ? 1 : 2 }} ${{ nodes.call.output.body.anything }} ${{ run.?x.orValue(1) }}"
      - "${{ [1].map(run, run.y) }}"
"#;
    assert_eq!(
        error(text),
        "f.yaml:10:11: `nodes.ask.output` has no field `decison`\n  hint: did you mean `decision`?\n\
         f.yaml:12:9: `nodes.call` has no field `outptu`\n  hint: did you mean `output`?\n\
         f.yaml:13:9: `nodes.call.output` has no field `boddy`\n  hint: did you mean `body`?\n\
         f.yaml:14:9: `nodes.call.error` has no field `cod`\n  hint: did you mean `code`?\n\
         f.yaml:14:9: `input` has no field `compny`\n  hint: did you mean `company`?"
    );
}

/// Definitions in an archive were accepted by the rules of their time, and must stay readable.
#[test]
fn stored_definitions_are_not_held_to_checks_of_style() {
    let stored =
        r#"{"name":"t","nodes":{"a":{"type":"transform","value":["{{ input.x }}","${{ run.when }}"]}}}"#;
    assert!(Program::from_canonical(stored).is_ok());
    assert!(Program::compile_text("t", stored.as_bytes()).is_err());
}

#[test]
fn one_mistake_does_not_hide_another_kind_of_mistake() {
    let text = r#"
name: t
deadline: soon
input: {type: strin}
concurrency: {key: "${{ inpt.x }}", limit: 1}
nodes:
  a: {type: sleep, duration: 5 minutes}
  b: {type: htp, needs: [a, x]}
  c: {type: transform, needs: {b: 1}, value: "${{ nodes.b.output }} ${{ oops }} ${{ 1 + }}"}
  d: {type: http, request: {method: GET}}
  e: 7
  f: {type: transform, needs: [e], retry: {max: 1}, when: input.x =}
"#;
    let found = error(text);
    let lines: Vec<&str> = found.lines().filter(|line| !line.starts_with("  hint")).collect();
    assert_eq!(
        lines[..10],
        [
            "f.yaml:3:11: `soon` is not a duration",
            "f.yaml:4:15: unknown type `strin`",
            "f.yaml:5:20: unknown variable `inpt`",
            "f.yaml:7:30: `5 minutes` is not a duration",
            "f.yaml:8:13: unknown node type `htp`",
            "f.yaml:8:29: unknown node `x`",
            "f.yaml:9:31: expected a list, found a map",
            "f.yaml:9:46: unknown variable `oops`",
            lines[8],
            "f.yaml:10:19: missing field `url`",
        ],
        "{found}"
    );
    assert!(lines[8].starts_with("f.yaml:9:46: bad expression"), "{found}");
    assert_eq!(
        lines[10..12],
        ["f.yaml:11:6: expected a map, found a number", "f.yaml:12:49: `1` is not a duration"]
    );
    assert!(lines[12].starts_with("f.yaml:12:59: bad expression"), "{found}");
    assert_eq!(lines.len(), 13, "{found}");
}

#[test]
fn all_mistakes_are_told_at_once_in_order() {
    let text = "name: t\nnodes:\n  a: {type: transform, timeout: 5, needs: x, jion: all}\n  b: {type: http}\n  c: 7\n";
    assert_eq!(
        error(text),
        "f.yaml:3:33: `5` is not a duration\n  hint: add a unit: `5s` or `5ms`\n\
         f.yaml:3:36: unknown node `x`\n  hint: nodes: `a`, `b`, `c`\n\
         f.yaml:3:46: unknown field `jion`\n  hint: did you mean `join`?\n\
         f.yaml:4:3: missing field `request`\n\
         f.yaml:5:6: expected a map, found a number"
    );
}

#[test]
fn positions_are_in_bytes_and_characters() {
    let text = "name: t\ndescription: \"äöü\"\nnodes: {ä: {type: transform}}";
    let error = Program::compile_text("f.yaml", text.as_bytes()).unwrap_err();
    let position = error.first().position.unwrap();
    assert_eq!((position.line, position.column), (3, 9));
    assert_eq!(&text[position.offset..position.offset + position.len], "ä");
    assert_eq!(error.first().path, "nodes.ä");
}

#[test]
fn json_without_text_is_told_by_path() {
    let value = json!({"name": "t", "nodes": {"a": {"type": "transform", "retry": {"max": 5}}}});
    assert_eq!(
        Program::compile_value(&value).unwrap_err().to_string(),
        "nodes.a.retry.max: `5` is not a duration\n  hint: add a unit: `5s` or `5ms`"
    );
}

proptest! {
    #[test]
    fn any_json_is_answered(value in json_value()) {
        let _ = Program::compile_value(&value);
        let _ = Program::compile_value(&json!({"name": "t", "nodes": {"a": value.clone()}}));
        let _ = Program::compile_value(&json!({"name": "t", "input": value.clone(), "output": value, "nodes": {"a": {"type": "transform"}}}));
    }
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let keys = proptest::sample::select(vec![
        "type",
        "needs",
        "nodes",
        "name",
        "retry",
        "request",
        "url",
        "input",
        "output",
        "items",
        "until",
        "when",
        "definition",
        "properties",
        "required",
        "on_error",
        "goto",
        "compensate",
        "cache",
        "ttl",
        "x",
    ]);
    let words = proptest::sample::select(vec![
        "http",
        "map",
        "loop",
        "transform",
        "workflow",
        "a",
        "5s",
        "${{ input.x }}",
        "${{ nodes.a.output",
        "object",
        "",
    ]);
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|b| json!(b)),
        any::<i64>().prop_map(|n| json!(n)),
        words.prop_map(|word| json!(word)),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(|list| json!(list)),
            proptest::collection::vec((keys.clone(), inner), 0..6).prop_map(|entries| entries
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}
