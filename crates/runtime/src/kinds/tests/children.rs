use std::sync::Arc;

use serde_json::{Value, json};
use switchyard_core::error::RunError;
use switchyard_core::run::{Child, ChildEnd, ChildrenPlan, EndStatus, WaitFor};
use switchyard_core::{NodeError, Payload};
use switchyard_lang::Program;

use super::{Bench, Done, NOW, parts, run};

const BODY: &str = "echo";

fn map(more: Value) -> Value {
    with_body(json!({"type": "map", "items": "${{ input.items }}"}), more)
}

fn repeat(more: Value) -> Value {
    with_body(json!({"type": "loop", "until": "output > 2"}), more)
}

fn with_body(mut node: Value, more: Value) -> Value {
    node["nodes"] = json!({BODY: {"type": "transform", "value": "${{ input }}"}});
    for (key, value) in more.as_object().unwrap() {
        node[key] = value.clone();
    }
    node
}

fn succeeded(output: Value) -> Child {
    ended(EndStatus::Succeeded, Payload::from_value(&output), None)
}

fn failed(message: &str) -> Child {
    ended(EndStatus::Failed, Payload::null(), Some(RunError::of_run("c", message)))
}

fn cancelled() -> Child {
    ended(EndStatus::Cancelled, Payload::null(), None)
}

fn ended(status: EndStatus, output: Payload, error: Option<RunError>) -> Child {
    Child { end: Some(ChildEnd { run: None, status, output, error }) }
}

impl Bench {
    async fn plan(&self, node: Value, input: Value) -> ChildrenPlan {
        plan_of(self.waits_for(node, input).await)
    }

    /// Executes the node again with its ended children, after this many rounds.
    async fn gather(&self, node: Value, rounds: u32, children: Vec<Child>) -> Result<Done, NodeError> {
        let gathered = |task: &mut super::Task| (task.rounds, task.children) = (rounds, Some(children));
        self.execute_task(node, json!({"items": []}), gathered).await
    }

    async fn inputs(&self, plan: &ChildrenPlan) -> Vec<Value> {
        let mut inputs = vec![];
        for child in &plan.children {
            inputs.push(self.services.payloads.load(&child.input).await.unwrap());
        }
        inputs
    }

    async fn register(&self, definition: Value) -> Arc<Program> {
        let program = Arc::new(Program::compile_value(&definition).unwrap());
        self.services.catalog.add(program.clone()).await.unwrap();
        self.services.archive.register_workflow(&program.ir.name, program.hash, NOW).await.unwrap();
        program
    }
}

fn plan_of(on: WaitFor) -> ChildrenPlan {
    match on {
        WaitFor::Children(plan) => *plan,
        other => panic!("waits for {other:?}"),
    }
}

#[tokio::test]
async fn a_map_plans_a_child_for_each_item() {
    let bench = Bench::new();
    let plan = bench.plan(map(json!({})), json!({"items": ["a", {"b": 1}, null]})).await;
    assert_eq!(bench.inputs(&plan).await, [json!("a"), json!({"b": 1}), json!(null)]);
    assert_eq!((&*plan.workflow, plan.concurrency, plan.stop_on_failure), ("t/n", 3, true));
    assert!(plan.children.iter().all(|child| child.run.partition() == run().partition()));
    // The process that starts the children can load their definition.
    bench.services.catalog.get(plan.definition).await.unwrap();
    assert!(bench.services.archive.definition(plan.definition).await.unwrap().is_some());
}

#[tokio::test]
async fn a_map_renders_its_input_for_each_item() {
    let bench = Bench::new();
    let input = json!({"i": "${{ index }}", "x": "${{ item.x * 2 }}", "of": "${{ input.name }}"});
    let node = map(json!({"input": input, "concurrency": 2, "on_item_error": "continue"}));
    let plan = bench.plan(node, json!({"name": "n", "items": [{"x": 1}, {"x": 2}]})).await;
    let expected = [json!({"i": 0, "x": 2, "of": "n"}), json!({"i": 1, "x": 4, "of": "n"})];
    assert_eq!(bench.inputs(&plan).await, expected);
    assert_eq!((plan.concurrency, plan.stop_on_failure), (2, false));
}

#[tokio::test]
async fn a_map_over_nothing_is_done() {
    assert_eq!(Bench::new().output(map(json!({})), json!({"items": []})).await, json!([]));
}

#[tokio::test]
async fn a_map_takes_lists_only_and_not_endless_ones() {
    let bench = Bench::new();
    let error = bench.error(map(json!({})), json!({"items": {"a": 1}})).await;
    assert_eq!(parts(&error), ("map_items", false, "`items` is not a list but a map"));
    let error = bench.error(map(json!({})), json!({"items": vec![0; 100_001]})).await;
    let message = "`items` has 100001 elements, more than the 100000 it may have";
    assert_eq!(parts(&error), ("map_items", false, message));
    let error = bench.error(map(json!({})), json!({"items": vec!["x".repeat(4_000); 20_000]})).await;
    let message = "the inputs of 20000 items have more than 67108864 bytes together";
    assert_eq!(parts(&error), ("map_items", false, message));
}

#[tokio::test]
async fn a_map_names_the_item_that_its_input_fails_for() {
    let bench = Bench::new();
    let node = map(json!({"input": "${{ item.x }}"}));
    let error = bench.error(node, json!({"items": [{"x": 1}, {}]})).await;
    assert_eq!((&*error.code, error.retryable), ("expression", false));
    assert!(error.message.starts_with("item 2 of 2: `item.x`: "), "{error}");
}

#[tokio::test]
async fn children_get_defaults_and_wrong_inputs_are_refused() {
    let bench = Bench::new();
    let properties = json!({"a": {"type": "integer"}, "b": {"type": "integer", "default": 7}});
    let input = json!({"type": "object", "required": ["a"], "properties": properties});
    let child =
        bench.register(json!({"name": "child", "input": input, "nodes": {"x": {"type": "transform"}}})).await;
    let node = json!({"type": "map", "items": "${{ input }}", "workflow": "child"});
    let plan = bench.plan(node.clone(), json!([{"a": 1}, {"a": 1, "b": 2}])).await;
    assert_eq!(bench.inputs(&plan).await, [json!({"a": 1, "b": 7}), json!({"a": 1, "b": 2})]);
    assert_eq!((&*plan.workflow, plan.definition), ("child", child.hash));
    let error = bench.error(node, json!([{"a": 1}, {"a": "x"}])).await;
    let message = "item 2 of 2: input.a: expected integer, found a string";
    assert_eq!(parts(&error), ("input", false, message));
    let error = bench.error(json!({"type": "workflow", "workflow": "child"}), json!(null)).await;
    assert_eq!(parts(&error), ("input", false, "input: missing `a`"));
}

#[tokio::test]
async fn a_map_gives_the_outputs_in_order_large_ones_too() {
    let bench = Bench::new();
    let large = json!("x".repeat(100_000));
    let kept = bench.services.payloads.keep(&large).await.unwrap();
    let children = vec![succeeded(json!(1)), ended(EndStatus::Succeeded, kept, None), succeeded(json!(null))];
    let output = bench.gather(map(json!({})), 1, children).await.unwrap().output();
    assert_eq!(output, json!([1, large, null]));
}

#[tokio::test]
async fn a_map_names_the_child_that_failed_not_those_that_were_stopped_for_it() {
    let bench = Bench::new();
    let children = vec![succeeded(json!(1)), cancelled(), failed("boom"), Child::default()];
    let error = bench.gather(map(json!({})), 1, children).await.unwrap_err();
    assert_eq!(parts(&error), ("item_failed", true, "item 3 of 4: boom (c)"));
    let error = bench.gather(map(json!({})), 1, vec![Child::default(), cancelled()]).await.unwrap_err();
    assert_eq!(parts(&error), ("item_failed", true, "item 2 of 2: was cancelled"));
    let error = bench.gather(map(json!({})), 1, vec![Child::default()]).await.unwrap_err();
    assert_eq!(parts(&error), ("item_failed", true, "item 1 of 1: was never started"));
}

#[tokio::test]
async fn a_map_that_continues_has_null_for_what_failed() {
    let children = vec![succeeded(json!(1)), failed("boom"), succeeded(json!(3))];
    let node = map(json!({"on_item_error": "continue"}));
    let output = Bench::new().gather(node, 1, children).await.unwrap().output();
    assert_eq!(output, json!([1, null, 3]));
}

#[tokio::test]
async fn outputs_that_are_too_large_together_are_not_even_loaded() {
    let reference =
        switchyard_core::CasRef { hash: switchyard_core::Hash::of(b"not there"), bytes: 40 << 20 };
    let child = || ended(EndStatus::Succeeded, Payload::Cas(reference), None);
    let error = Bench::new().gather(map(json!({})), 1, vec![child(), child()]).await.unwrap_err();
    assert_eq!((&*error.code, error.retryable), ("too_large", false), "{error}");
}

#[tokio::test]
async fn a_loop_goes_on_with_what_it_had() {
    let bench = Bench::new();
    let first = bench.plan(repeat(json!({})), json!(null)).await;
    assert_eq!(bench.inputs(&first).await, [json!(null)]);
    assert_eq!((first.concurrency, first.children.len()), (1, 1));
    let second = bench.gather(repeat(json!({})), 1, vec![succeeded(json!(2))]).await.unwrap();
    assert_eq!(bench.inputs(&plan_of(second.waiting())).await, [json!(2)]);
    let done = bench.gather(repeat(json!({})), 2, vec![succeeded(json!(3))]).await.unwrap();
    assert_eq!(done.output(), json!(3));
}

#[tokio::test]
async fn a_loop_counts_from_one() {
    let bench = Bench::new();
    let input = json!({"i": "${{ iteration }}", "last": "${{ last }}"});
    let node = repeat(json!({"input": input, "until": "iteration == 3"}));
    let first = bench.plan(node.clone(), json!(null)).await;
    assert_eq!(bench.inputs(&first).await, [json!({"i": 1, "last": null})]);
    let third = bench.gather(node.clone(), 2, vec![succeeded(json!("b"))]).await.unwrap();
    assert_eq!(bench.inputs(&plan_of(third.waiting())).await, [json!({"i": 3, "last": "b"})]);
    assert_eq!(bench.gather(node, 3, vec![succeeded(json!("c"))]).await.unwrap().output(), json!("c"));
}

#[tokio::test]
async fn a_loop_ends_at_its_limit_and_at_a_failure() {
    let bench = Bench::new();
    let node = repeat(json!({"max_iterations": 2}));
    let error = bench.gather(node.clone(), 2, vec![succeeded(json!(0))]).await.unwrap_err();
    assert_eq!(parts(&error), ("max_iterations", false, "`until` is not true after 2 iterations"));
    let error = bench.gather(node.clone(), 2, vec![failed("boom")]).await.unwrap_err();
    assert_eq!(parts(&error), ("iteration_failed", true, "iteration 2: boom (c)"));
    let error = bench.gather(node, 1, vec![succeeded(json!("x"))]).await.unwrap_err();
    assert_eq!(&*error.code, "expression", "{error}");
}

#[tokio::test]
async fn a_workflow_runs_one_child() {
    let bench = Bench::new();
    let node = |more: Value| with_body(json!({"type": "workflow"}), more);
    let plan = bench.plan(node(json!({"input": {"a": "${{ input }}"}})), json!(1)).await;
    assert_eq!(bench.inputs(&plan).await, [json!({"a": 1})]);
    let plan = bench.plan(node(json!({})), json!(1)).await;
    assert_eq!(bench.inputs(&plan).await, [json!({})]);
    let done = bench.gather(node(json!({})), 1, vec![succeeded(json!("out"))]).await.unwrap();
    assert_eq!(done.output(), json!("out"));
    for (child, why) in [(failed("boom"), "boom (c)"), (cancelled(), "was cancelled")] {
        let error = bench.gather(node(json!({})), 1, vec![child]).await.unwrap_err();
        assert_eq!(parts(&error), ("workflow_failed", true, format!("the child run: {why}").as_str()));
    }
}

#[tokio::test]
async fn a_workflow_that_is_not_there_is_named() {
    let bench = Bench::new();
    let error = bench.error(json!({"type": "workflow", "workflow": "nope"}), json!(null)).await;
    assert_eq!(parts(&error), ("unknown_workflow", false, "there is no workflow `nope`"));
}

#[tokio::test]
async fn the_deepest_run_starts_no_other() {
    let bench = Bench::new();
    for (depth, starts) in [(15, true), (16, false)] {
        let node = with_body(json!({"type": "workflow"}), json!({}));
        let result = bench.execute_task(node, json!(null), |task| task.depth = depth).await;
        assert_eq!(result.as_ref().err().map(|error| &*error.code), (!starts).then_some("too_deep"));
    }
}
