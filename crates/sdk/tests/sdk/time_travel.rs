//! The clock of the testing module.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchyard_sdk::testing::{TestError, TestSwitchyard};
use switchyard_sdk::{HandlerError, NodeState, RunStatus, SubmitOptions, Timestamp};
use tokio::sync::Notify;

const HOUR: Duration = Duration::from_secs(3600);

const NAPS: &str = r#"
name: naps
nodes:
  first: { type: sleep, duration: 2h }
  second: { type: sleep, duration: 1h, needs: [first] }
  third: { type: sleep, duration: 1h, needs: [second] }
"#;

#[tokio::test]
async fn naps_end_at_their_own_moments_and_not_where_the_clock_was_put() {
    let run = TestSwitchyard::new().starting_at(Timestamp::from_millis(0)).start(NAPS, ()).await.unwrap();
    run.advance(2 * HOUR - Duration::from_millis(1)).await.unwrap();
    run.look().await.unwrap().assert_node("first", NodeState::Waiting);
    // Advances past the second nap and half through the third.
    run.advance(Duration::from_millis(1) + HOUR + HOUR / 2).await.unwrap();
    let seen = run.look().await.unwrap();
    seen.assert_node("second", NodeState::Succeeded).assert_node("third", NodeState::Waiting);
    assert_eq!(run.now().as_millis(), 3 * 3_600_000 + 1_800_000);
    assert!(run.run_to_end::<Value>().await.unwrap().succeeded());
    assert_eq!(run.look().await.unwrap().view().ended_at, Some(Timestamp::from_millis(4 * 3_600_000)));
}

// On two threads: the timer duty and the test race for the same timers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_does_not_move_for_what_is_due_already() {
    let text = "name: t\nnodes:\n  none: { type: sleep, duration: 0s }\n  work: { type: function, function: work, needs: [none] }\n";
    for _ in 0..20 {
        let switchyard = TestSwitchyard::new().handler("work", |_: (), _| async {
            tokio::task::yield_now().await;
            Ok(())
        });
        let run = switchyard.start(text, ()).await.unwrap();
        let options = SubmitOptions::new().deadline(HOUR);
        let hurried = run.switchyard().submit_with(text, (), options).await.unwrap();
        let before = run.now();
        assert!(run.run_to_end::<()>().await.unwrap().succeeded());
        assert!(run.switchyard().wait::<()>(hurried).await.unwrap().succeeded());
        assert_eq!(run.now(), before, "nothing had to be waited for");
    }
}

#[tokio::test]
async fn a_nap_goes_on_after_a_restart() {
    let run = TestSwitchyard::new().start(NAPS, ()).await.unwrap();
    run.advance(HOUR).await.unwrap();
    let run = run.restart().await.unwrap();
    assert_eq!(run.switchyard().recovered().runs, 1);
    run.advance(HOUR).await.unwrap();
    run.look().await.unwrap().assert_node("first", NodeState::Succeeded);
}

#[tokio::test]
async fn runs_within_the_run_are_waited_for_too() {
    let child = "name: child\nnodes:\n  nap: { type: sleep, duration: 1h }\n  double: { type: function, function: double, needs: [nap], input: '${{ input.n }}' }\n";
    let text = r#"
name: t
nodes:
  each: { type: map, items: "${{ input }}", concurrency: 2, input: { n: "${{ item }}" }, workflow: child }
"#;
    let switchyard =
        TestSwitchyard::new().workflow(child).handler("double", |n: u32, _| async move { Ok(2 * n) });
    let run = switchyard.start(text, [1, 2, 3]).await.unwrap();
    let before = run.now();
    assert_eq!(run.run_to_end::<Value>().await.unwrap().output(), Ok(json!([2, 4, 6])));
    assert_eq!(run.now().since(before), 2 * HOUR, "two at once, then the third");
}

const SLOW: &str =
    "name: t\ndeadline: 1h\nnodes:\n  slow: { type: function, function: slow, timeout: 10h }\n";

/// A Switchyard with a handler that never returns, and a notification of the handler's start.
fn hanging() -> (TestSwitchyard, Arc<Notify>) {
    let begun = Arc::new(Notify::new());
    let tell = begun.clone();
    let switchyard = TestSwitchyard::new().handler("slow", move |_: (), _| {
        tell.notify_one();
        std::future::pending::<Result<(), HandlerError>>()
    });
    (switchyard, begun)
}

#[tokio::test]
async fn a_deadline_passes_while_a_handler_is_at_work() {
    let (switchyard, begun) = hanging();
    let run = switchyard.start(SLOW, ()).await.unwrap();
    begun.notified().await;
    run.jump(HOUR).await.unwrap();
    let failure = run.run_to_end::<Value>().await.unwrap().output().unwrap_err();
    assert_eq!((failure.status, failure.code()), (RunStatus::Failed, "deadline_exceeded"));
}

#[tokio::test]
async fn a_handler_that_hangs_is_named() {
    let (switchyard, begun) = hanging();
    let run = switchyard.real_timeout(Duration::from_millis(1)).start(SLOW, ()).await.unwrap();
    begun.notified().await;
    let busy = run.run_to_end::<Value>().await.unwrap_err();
    assert!(busy.to_string().ends_with("does not come to rest: `slow` is running"), "{busy}");
}

#[tokio::test]
async fn a_run_that_time_does_not_help_says_what_it_waits_for() {
    let text = "name: t\nnodes:\n  hold: { type: wait, signal: go }\n";
    let run = TestSwitchyard::new().start(text, ()).await.unwrap();
    let stuck = run.run_to_end::<Value>().await.unwrap_err();
    assert!(matches!(stuck, TestError::Stuck { .. }));
    assert!(stuck.to_string().ends_with("does not end by itself: `hold` waits for signal `go`"), "{stuck}");
}
