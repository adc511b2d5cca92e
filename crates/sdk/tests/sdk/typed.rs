//! Typed values in and out of handlers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchyard_sdk::testing::TestSwitchyard;
use switchyard_sdk::{Error, HandlerError, NodeState, RunStatus, Switchyard};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    order: Order,
    total: f64,
}

const ORDER: &str = r#"
name: order
nodes:
  buy: { type: function, function: buy, input: "${{ input }}", retry: { max_attempts: 5 } }
"#;

fn shop() -> TestSwitchyard {
    TestSwitchyard::new().handler("buy", |order: Order, _| async move {
        Ok(Receipt { total: f64::from(order.count) * 2.5, order })
    })
}

#[tokio::test]
async fn structs_go_in_and_come_out() {
    let folder = tempfile::tempdir().unwrap();
    let switchyard = Switchyard::builder(folder.path())
        .handler("buy", |order: Order, _| async move {
            Ok::<_, HandlerError>(Receipt { total: f64::from(order.count) * 2.5, order })
        })
        .open()
        .await
        .unwrap();
    let order = || Order { item: "tea".into(), count: 2 };
    let outcome = switchyard.run::<Receipt>(ORDER, order()).await.unwrap();
    assert_eq!(outcome.output(), Ok(Receipt { order: order(), total: 5.0 }));
    switchyard.shut_down().await;
}

#[tokio::test]
async fn a_node_without_input_calls_a_handler_of_nothing() {
    let text = "name: t\nnodes:\n  now: { type: function, function: answer }\n";
    let run =
        TestSwitchyard::new().handler("answer", |_: (), _| async { Ok(42) }).start(text, ()).await.unwrap();
    assert_eq!(run.run_to_end::<u8>().await.unwrap().output(), Ok(42));
}

#[tokio::test]
async fn input_of_another_type_fails_the_node_for_good_and_says_why() {
    let run = shop().start(ORDER, json!({"item": "tea", "count": -1})).await.unwrap();
    let failure = run.run_to_end::<Value>().await.unwrap().output().unwrap_err();
    assert_eq!((failure.status, failure.code()), (RunStatus::Failed, "input"));
    let message = &*failure.error.message;
    assert!(message.starts_with("the input is not what `buy` takes: invalid value"), "{message}");
    run.look().await.unwrap().assert_node("buy", NodeState::Failed).assert_attempts("buy", 1);
}

#[tokio::test]
async fn output_that_is_not_json_fails_the_node_for_good() {
    let text = "name: t\nnodes:\n  bad: { type: function, function: bad, retry: { max_attempts: 5 } }\n";
    // JSON keys can only be strings.
    let switchyard =
        TestSwitchyard::new().handler("bad", |_: (), _| async { Ok(BTreeMap::from([(vec![1], 2)])) });
    let run = switchyard.start(text, ()).await.unwrap();
    let failure = run.run_to_end::<Value>().await.unwrap().output().unwrap_err();
    assert_eq!((failure.code(), failure.error.attempt), ("output", Some(1)));
}

#[tokio::test]
async fn an_output_of_another_type_than_asked_for_is_an_error_and_not_a_failed_run() {
    let run = shop().start(ORDER, Order { item: "tea".into(), count: 1 }).await.unwrap();
    run.look().await.unwrap().assert_status(RunStatus::Succeeded);
    let error = run.switchyard().wait::<u8>(run.id()).await.unwrap_err();
    assert!(matches!(error, Error::Output { .. }), "{error}");
    assert!(run.switchyard().wait::<Receipt>(run.id()).await.unwrap().succeeded());
}

#[tokio::test]
async fn an_input_that_is_not_json_is_refused() {
    let refused = shop().start(ORDER, BTreeMap::from([(vec![1], 2)])).await.unwrap_err();
    assert_eq!(refused.to_string(), "the value is not JSON");
}
