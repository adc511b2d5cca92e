//! Approvals, signals, cancelling.

use std::sync::Arc;

use serde_json::{Value, json};
use switchyard_sdk::testing::{TestError, TestRun, TestSwitchyard};
use switchyard_sdk::{NodeState, RunStatus};
use tokio::sync::Notify;

const REFUND: &str = r#"
name: refund
nodes:
  ask: { type: hitl, approver: boss, prompt: "refund ${{ input.amount }}?", input: "${{ input }}", timeout: 2h }
  pay: { type: function, function: pay, needs: [ask], input: "${{ nodes.ask.output.comment }}" }
"#;

async fn refund() -> TestRun {
    let switchyard = TestSwitchyard::new().handler("pay", |comment: String, _| async move { Ok(comment) });
    switchyard.start(REFUND, json!({"amount": 7})).await.unwrap()
}

#[tokio::test]
async fn a_person_approves_with_a_comment() {
    let run = refund().await;
    run.look().await.unwrap().assert_node("ask", NodeState::Waiting);
    let pending = run.switchyard().approvals().await.unwrap();
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].prompt.as_deref(), Some("refund 7?"));
    assert_eq!(pending[0].payload, json!({"amount": 7}));
    run.approve("ask", "boss", "go ahead").await.unwrap();
    assert_eq!(run.run_to_end::<String>().await.unwrap().output().unwrap(), "go ahead");
}

#[tokio::test]
async fn a_person_rejects_or_says_nothing() {
    let run = refund().await;
    run.reject("ask", "boss", "no").await.unwrap();
    let failure = run.run_to_end::<Value>().await.unwrap().output().unwrap_err();
    assert_eq!(failure.code(), "rejected");
    let again = run.approve("ask", "boss", "after all").await.unwrap_err();
    assert!(matches!(again, TestError::NotAsked { .. }), "{again}");

    let run = refund().await;
    let before = run.now();
    assert!(!run.run_to_end::<Value>().await.unwrap().succeeded());
    assert_eq!(run.now().since(before).as_secs(), 2 * 3600);
}

#[tokio::test]
async fn a_signal_lets_a_run_go_on_with_its_payload() {
    let text = "name: t\nnodes:\n  hold: { type: wait, signal: go }\n";
    let run = TestSwitchyard::new().start(text, ()).await.unwrap();
    run.signal("go", json!({"with": "this"})).await.unwrap();
    assert_eq!(run.run_to_end::<Value>().await.unwrap().output(), Ok(json!({"with": "this"})));
}

#[tokio::test]
async fn a_cancelled_run_says_by_whom_and_can_be_retried() {
    let run = refund().await;
    run.look().await.unwrap().assert_node("ask", NodeState::Waiting);
    run.cancel("the boss", "too dear").await.unwrap();
    let failure = run.run_to_end::<Value>().await.unwrap().output().unwrap_err();
    assert_eq!(failure.status, RunStatus::Cancelled);
    assert_eq!(&*failure.error.message, "cancelled by the boss: too dear");
    run.switchyard().retry(run.id(), "the boss").await.unwrap();
    run.approve("ask", "boss", "well then").await.unwrap();
    assert!(run.run_to_end::<String>().await.unwrap().succeeded());
}

struct Bell(Arc<Notify>);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_handler_of_a_cancelled_run_is_dropped_where_it_awaits() {
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, bell) = (begun.clone(), dropped.clone());
    let switchyard = TestSwitchyard::new().handler("hang", move |_: (), _| {
        let (tell, bell) = (tell.clone(), Bell(bell.clone()));
        async move {
            tell.notify_one();
            std::future::pending::<()>().await;
            drop(bell);
            Ok(())
        }
    });
    let text = "name: t\nnodes:\n  hang: { type: function, function: hang }\n";
    let run = switchyard.start(text, ()).await.unwrap();
    begun.notified().await;
    run.cancel("me", "").await.unwrap();
    dropped.notified().await;
    run.look().await.unwrap().assert_status(RunStatus::Cancelled).assert_node("hang", NodeState::Cancelled);
}

#[tokio::test]
async fn a_paused_run_stands_still_until_it_is_resumed() {
    let run = refund().await;
    run.look().await.unwrap();
    run.switchyard().pause(run.id(), "boss").await.unwrap();
    run.approve("ask", "boss", "go").await.unwrap();
    run.look().await.unwrap().assert_status(RunStatus::Paused).assert_node("pay", NodeState::Ready);
    run.switchyard().resume(run.id(), "boss").await.unwrap();
    assert!(run.run_to_end::<String>().await.unwrap().succeeded());
}
