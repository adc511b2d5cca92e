use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use switchyard_core::Timestamp;
use switchyard_core::ir::{Edge, EdgeOn};
use switchyard_core::retry::Backoff;

use super::*;
use crate::expr::{Budget, NodeView, Scope};
use crate::program::Body;
use crate::spec::HitlTimeout;

const ENRICH: &str = r#"
name: enrich-lead
input: { type: object, required: [company] }
nodes:
  fetch:
    type: http
    request: { method: GET, url: "https://crm.example.com/companies/${{ input.company }}" }
    retry: { max_attempts: 5, backoff: exponential, initial: 500ms, max: 30s, jitter: true }
    timeout: 30s
  analyze:
    type: function
    function: analyst
    queue: gpu
    needs: [fetch]
    input: { doc: "${{ nodes.fetch.output.body }}" }
    compensate: { type: function, function: forget, input: "${{ nodes.analyze.output.id }}", retry: {} }
  approve:
    type: hitl
    needs: [analyze]
    when: "${{ nodes.analyze.output.risk > 0.7 }}"
    approver: manager@example.com
    timeout: 2h
    on_timeout: reject
  save:
    type: function
    function: noop
    needs: [analyze, approve]
    cache: { ttl: 1h }
    on_error: { goto: report }
    retry:
  report:
    type: transform
    join: any
    value: { error: "${{ nodes.save.error }}" }
output: { id: "${{ nodes.save.output.id }}" }
"#;

fn program(text: &str) -> Program {
    Program::compile_text("t.yaml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    Program::compile_text("t.yaml", text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_graph_is_as_written() {
    let program = program(ENRICH);
    let ir = &program.ir;
    let ids: Vec<&str> = ir.nodes.iter().map(|node| &*node.id).collect();
    assert_eq!(ids, ["fetch", "analyze", "approve", "save", "report", "analyze/compensate", "/output"]);
    let queues: Vec<&str> = ir.nodes.iter().map(|node| &*node.queue).collect();
    assert_eq!(
        queues,
        ["http", "function.gpu", "hitl", "builtin", "transform", "function:forget", "transform"]
    );
    let needs: Vec<u32> = ir.nodes.iter().map(|node| node.needs).collect();
    assert_eq!(needs, [0, 1, 1, 2, 1, 0, 0]);
    assert_eq!(ir.nodes[3].dependents, [Edge { to: NodeIx(4), on: EdgeOn::Failure }]);
    assert_eq!(ir.nodes[3].on_error, OnError::Goto(NodeIx(4)));
    assert_eq!((ir.entries.as_slice(), ir.sinks.as_slice()), (&[NodeIx(0)][..], &[NodeIx(3), NodeIx(4)][..]));
    assert_eq!(ir.output, Some(NodeIx(6)));
    assert_eq!(ir.nodes[1].compensation, Some(NodeIx(5)));
    assert_eq!(ir.nodes[5].role, Role::Compensation { of: NodeIx(1) });
    let reads: Vec<Vec<u32>> =
        ir.nodes.iter().map(|node| node.reads.iter().map(|ix| ix.0).collect()).collect();
    assert_eq!(reads, [vec![], vec![0], vec![1], vec![], vec![3], vec![1], vec![3]]);
    assert_eq!(ir.find("/output"), Some(NodeIx(6)));
    assert_eq!(program.nodes.len(), ir.nodes.len());
}

#[test]
fn policies_have_their_defaults() {
    let program = program(ENRICH);
    let retry = |id: &str| program.ir.node(program.ir.find(id).unwrap()).retry.clone();
    assert_eq!((retry("fetch").max_attempts, retry("fetch").initial), (5, Duration::from_millis(500)));
    assert_eq!(retry("analyze").max_attempts, 1);
    for id in ["save", "analyze/compensate"] {
        let given = retry(id);
        assert_eq!((given.max_attempts, given.backoff, given.jitter), (3, Backoff::Exponential, true));
        assert_eq!((given.initial, given.max), (Duration::from_secs(1), Duration::from_secs(60)));
    }
    let limit = |id: &str| program.ir.node(program.ir.find(id).unwrap()).limit;
    assert_eq!(limit("fetch"), AttemptLimit::Own(Duration::from_secs(30)));
    assert_eq!((limit("save"), limit("report")), (AttemptLimit::Default, AttemptLimit::Unlimited));
    assert_eq!(
        limit("approve"),
        AttemptLimit::Unlimited,
        "how long a person may take is no limit of an attempt"
    );
    let CompiledKind::Hitl(hitl) = &program.find("approve").unwrap().kind else { panic!() };
    assert_eq!(hitl.on_timeout, HitlTimeout::Reject);
}

#[test]
fn templates_are_ready_to_render() {
    let program = program(ENRICH);
    let mut scope = Scope::new(json!({"company": "acme"}));
    let view = |output| NodeView { status: "succeeded".into(), output, error: Value::Null };
    scope.set_node("analyze", view(json!({"risk": 1})));
    scope.set_node("save", view(json!({"id": 7})));
    let CompiledKind::Http(http) = &program.find("fetch").unwrap().kind else { panic!() };
    assert_eq!(
        http.url.render_text(&scope, &Budget::default()).unwrap(),
        "https://crm.example.com/companies/acme"
    );
    assert!(
        program
            .find("approve")
            .unwrap()
            .when
            .as_ref()
            .unwrap()
            .eval_bool(&scope, &Budget::default())
            .unwrap()
    );
    let CompiledKind::Transform(output) = &program.find("/output").unwrap().kind else { panic!() };
    assert_eq!(output.value.as_ref().unwrap().render(&scope, &Budget::default()).unwrap(), json!({"id": 7}));
    let error = program
        .find("analyze")
        .unwrap()
        .input
        .as_ref()
        .unwrap()
        .render(&scope, &Budget::default())
        .unwrap_err();
    assert_eq!(error.to_string(), "`nodes.fetch.output.body`: node `fetch` has not ended");
}

#[test]
fn the_hash_is_of_the_meaning() {
    let yaml = program(
        "name: t\nnodes:\n  a: {type: http, needs: [], timeout: 60s, priority: null, request: {url: 'http://x', method: GET}, join: all}\n",
    );
    let json = program(
        r#"{"nodes": {"a": {"request": {"url": "http://x"}, "timeout": "1m", "type": "http"}}, "name": "t"}"#,
    );
    assert_eq!(yaml.canonical, json.canonical);
    assert_eq!(
        &*yaml.canonical,
        r#"{"name":"t","nodes":{"a":{"type":"http","request":{"url":"http://x"},"timeout":"1m"}}}"#
    );
    assert_eq!((yaml.hash, yaml.ir.hash), (json.hash, Hash::of(yaml.canonical.as_bytes())));
    assert_ne!(yaml.hash, program("name: t\nnodes: {a: {type: http, request: {url: 'http://y'}}}").hash);
}

#[test]
fn stored_definitions_come_back_the_same() {
    for text in [ENRICH, EVERY_KIND] {
        let first = program(text);
        let again = Program::from_canonical(&first.canonical).unwrap();
        assert_eq!((first.hash, &first.canonical), (again.hash, &again.canonical));
        assert_eq!(first.definition, again.definition);
        let prints =
            |program: &Program| program.ir.nodes.iter().map(|node| node.fingerprint).collect::<Vec<_>>();
        assert_eq!(prints(&first), prints(&again));
        let decoded: Definition = serde_json::from_str(&first.canonical).unwrap();
        assert_eq!(decoded, *first.definition);
    }
}

pub(crate) const EVERY_KIND: &str = r#"
name: everything
description: one of each
deadline: 1h
parallelism: 4
concurrency: { key: "tenant-${{ input.tenant }}", limit: 2 }
nodes:
  h: { type: http, request: { method: POST, url: "https://x/${{ input.a }}", headers: { X-A: 1 }, query: { q: "${{ input.q }}" }, body: { a: null } }, expect_status: [200, 404] }
  f: { type: function, function: save, description: saves, priority: 9, needs: h, on_error: continue }
  c: { type: command, command: [sleep, 5, "${{ input.a }}"], env: { A: "${{ run.id }}" }, cwd: /tmp }
  t: { type: transform, value: null }
  s: { type: sleep, duration: 1m }
  s2: { type: sleep, until: "${{ input.at }}" }
  w: { type: wait, signal: "paid-${{ input.order }}", timeout: 1d, on_timeout: continue }
  g: { type: hitl, approver: me, prompt: "ok?", timeout: 1h, on_timeout: fail }
  m:
    type: map
    items: "${{ input.list }}"
    concurrency: 3
    on_item_error: continue
    input: { it: "${{ item }}", i: "${{ index }}" }
    nodes: { x: { type: transform, value: "${{ input.it }}" } }
    output: "${{ nodes.x.output }}"
  l:
    type: loop
    until: output.done || iteration == 3
    max_iterations: 5
    input: { last: "${{ last }}", n: "${{ iteration }}" }
    definition: { name: body, nodes: { y: { type: function, function: echo } } }
  p: { type: workflow, workflow: other, version: 2, input: { a: 1 }, cache: { ttl: 1h, key: "${{ input.a }}" } }
output: ["${{ nodes.m.output }}", 1]
"#;

#[test]
fn every_kind_compiles() {
    let program = program(EVERY_KIND);
    let queues: Vec<&str> = program.ir.nodes.iter().map(|node| &*node.queue).collect();
    let expected = [
        "http",
        "function:save",
        "command",
        "transform",
        "timer",
        "timer",
        "timer",
        "hitl",
        "flow",
        "flow",
        "flow",
        "transform",
    ];
    assert_eq!(queues, expected);
    assert_eq!(program.ir.deadline, Some(Duration::from_secs(3600)));
    let (key, limit) = program.concurrency().unwrap();
    let key = key.render_text(&Scope::new(json!({"tenant": "x"})), &Budget::default()).unwrap();
    assert_eq!((key.as_str(), limit.get()), ("tenant-x", 2));
    let CompiledKind::Map(map) = &program.find("m").unwrap().kind else { panic!() };
    let Body::Inline(child) = &map.body else { panic!() };
    assert_eq!((&*child.ir.name, child.ir.nodes.len()), ("everything/m", 2));
    assert_eq!(Program::from_canonical(&child.canonical).unwrap().hash, child.hash);
}

#[test]
fn secrets_stand_in_calls_alone() {
    let program = program(
        r#"
name: t
nodes:
  h:
    type: http
    request: { url: "https://x/${{ secrets.PATH }}", headers: { A: "${{ 'b ' + secrets['my-key'] }}" }, body: ["${{ secrets.A }}"] }
    compensate: { type: http, request: { url: "https://x", query: { t: "${{ secrets.B }}" } } }
  c: { type: command, command: [ls], env: { T: "${{ secrets.A }}" } }
"#,
    );
    assert_eq!(program.find("h").unwrap().secrets, ["A", "PATH", "my-key"]);
    assert_eq!(program.find("h/compensate").unwrap().secrets, ["B"]);
    assert_eq!(program.find("c").unwrap().secrets, ["A"]);
    let alone = "secrets can be used in `request` of an `http` node and `env` of a `command` node alone";
    for (node, expected) in [
        ("{type: transform, value: '${{ secrets.A }}'}", alone),
        ("{type: command, command: [echo, '${{ secrets.A }}']}", alone),
        ("{type: function, function: f, input: '${{ [secrets.A] }}'}", alone),
        ("{type: http, request: {url: 'https://x'}, when: secrets.A == ''}", alone),
        ("{type: http, request: {url: 'https://x'}, cache: {ttl: 1h, key: '${{ secrets.A }}'}}", alone),
        (
            "{type: http, request: {url: '${{ secrets }}'}}",
            "`secrets` must be followed by the name of a secret",
        ),
        (
            "{type: http, request: {url: '${{ secrets[input.x] }}'}}",
            "`secrets` must be followed by the name of a secret",
        ),
        ("{type: http, request: {url: '${{ secrets[\"../a\"] }}'}}", "`../a` is not the name of a secret"),
    ] {
        let found = error(&format!("name: t\nnodes: {{a: {node}}}"));
        assert!(found.contains(expected), "{node}: {found}");
    }
}

#[test]
fn sleeps_say_when_they_end() {
    let wake = |field: &str, input: Value| {
        let program = program(&format!("name: t\nnodes: {{s: {{type: sleep, {field}}}}}"));
        let CompiledKind::Sleep(sleep) = &program.nodes[0].kind else { panic!() };
        sleep
            .wake_at(&Scope::new(input), Timestamp::from_millis(1_000), &Budget::default())
            .map(Timestamp::as_millis)
    };
    assert_eq!(wake("duration: 1m", json!(null)).unwrap(), 61_000);
    assert_eq!(wake("duration: '${{ input }}'", json!("2s")).unwrap(), 3_000);
    assert_eq!(wake("duration: '${{ input }}'", json!(1.5)).unwrap(), 2_500);
    assert_eq!(wake("until: '${{ input }}'", json!("1970-01-01T00:00:09Z")).unwrap(), 9_000);
    assert_eq!(
        wake("duration: '${{ input }}'", json!(-1)).unwrap_err().to_string(),
        "`input`: -1 seconds is not a time to sleep"
    );
    assert_eq!(
        wake("until: '${{ input }}'", json!("soon")).unwrap_err().to_string(),
        "`input`: `soon` is not a time such as `2026-01-31T12:00:00Z`"
    );
}

#[test]
fn a_node_may_read_its_ancestors_only() {
    let text = |needs: &str| {
        format!(
            "name: t\nnodes:\n  a: {{type: transform}}\n  b: {{type: transform, needs: [a]}}\n  c: {{type: transform, needs: [{needs}], value: \"${{{{ nodes.a.output }}}}\"}}\n"
        )
    };
    assert!(program(&text("b")).ir.nodes[2].reads == [NodeIx(0)]);
    assert_eq!(
        error(&text("")),
        "t.yaml:5:42: `c` reads `a`, which need not have ended by then\n  hint: add `a` to the `needs` of `c`"
    );
}

#[test]
fn cycles_are_told_with_their_path() {
    let text = "name: t\nnodes:\n  z: {type: transform, needs: [c]}\n  a: {type: transform, needs: [c]}\n  b: {type: transform, needs: [a]}\n  c: {type: transform, needs: [b]}\n";
    assert_eq!(
        error(text),
        "t.yaml:4:24: the nodes wait for each other in a cycle: a → b → c → a\n  hint: remove one of these needs"
    );
    let goto =
        "name: t\nnodes:\n  a: {type: transform}\n  b: {type: transform, needs: [a], on_error: {goto: a}}\n";
    assert!(error(goto).contains("cycle: a → b → a"), "{}", error(goto));
}

#[test]
fn bodies_nest_so_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let open = "{type: workflow, nodes: {a: ".repeat(depth);
        format!("name: t\nnodes: {{a: {open}{{type: transform}}{}}}", "}}".repeat(depth))
    };
    assert!(Program::compile_text("t", nested(8).as_bytes()).is_ok());
    assert!(error(&nested(9)).contains("child workflows are nested deeper than the limit of 8 levels"));
    assert!(error(&nested(50)).contains("nested deeper than the limit"));
}

fn chain(length: usize, read: impl Fn(usize) -> Option<usize>) -> String {
    let mut text = String::from("name: big\nnodes:\n");
    for i in 0..length {
        let needs = if i > 0 { format!("n{}", i - 1) } else { String::new() };
        let value = read(i).map(|r| format!(", value: \"${{{{ nodes.n{r}.output }}}}\"")).unwrap_or_default();
        writeln!(text, "  n{i}: {{ type: transform, needs: [{needs}]{value} }}").unwrap();
    }
    text
}

// No timed assertions below: the tests guard against quadratic work, which takes minutes.

#[test]
fn fifty_thousand_nodes_compile() {
    let count = 50_000;
    assert_eq!(program(&chain(count, |i| i.checked_sub(2))).ir.nodes.len(), count);
    let mut text = String::from("name: fan\nnodes:\n  start: {type: transform}\n");
    for i in 0..count {
        let value = "${{ nodes.start.output }}";
        writeln!(text, "  n{i}: {{type: function, function: echo, needs: [start], input: \"{value}\"}}")
            .unwrap();
    }
    assert_eq!(program(&text).ir.nodes[0].dependents.len(), count);
}

#[test]
fn far_reads_of_long_chains_are_checked() {
    let count = 20_000;
    assert_eq!(program(&chain(count, |i| (i > 0).then_some(0))).ir.nodes[count - 1].reads, [NodeIx(0)]);
    assert_eq!(program(&chain(count, |i| (i > 1).then_some(i / 2))).ir.nodes[9].reads, [NodeIx(4)]);
    let forwards = error(&chain(count, |i| (i == 100).then_some(15_000)));
    assert!(forwards.contains("`n100` reads `n15000`, which need not have ended by then"), "{forwards}");
}

#[test]
fn long_cycles_are_told_in_short() {
    let open = "n0: { type: transform, needs: []";
    let text = chain(20_000, |_| None).replacen(open, "n0: { type: transform, needs: [n19999]", 1);
    let error = error(&text);
    assert!(error.contains("n0 → n1 → n2 → n3 → n4 → n5 → … 19989 more … → n19995"), "{error}");
}

#[test]
fn many_mistakes_are_counted() {
    let text = chain(20_000, |_| None).replace("needs: [", "nedes: [], needs: [x");
    let found = error(&text);
    assert!(
        found.starts_with("t.yaml:3:26: unknown field `nedes`\n  hint: did you mean `needs`?"),
        "{found}"
    );
    assert!(found.ends_with("and 39900 more"), "{found}");
    let text = chain(20_000, |_| None).replace("needs: [", "needs: [x");
    assert!(error(&text).contains("unknown node `x"));
}

#[test]
fn too_large_graphs_are_refused() {
    let mut text = String::from("name: big\nnodes:\n");
    for i in 0..=limits::NODES_MAX {
        writeln!(text, "  n{i}: {{type: transform}}").unwrap();
    }
    assert!(error(&text).starts_with("t.yaml:2:1: 100001 nodes, more than the limit of 100000"));
}
