//! Checkpoints, chunks, heartbeats and log lines of a running handler, and its cancellation.

use std::sync::Arc;

use serde_json::{Value, json};
use switchyard_core::run::EventKind;
use switchyard_runtime::LogFilter;
use switchyard_sdk::testing::{TestRun, TestSwitchyard};
use switchyard_sdk::{Context, HandlerError, LogLevel, NodeState, RunStatus};
use tokio::sync::Notify;

const COPY: &str = r#"
name: copy
nodes:
  copy: { type: function, function: copy, retry: { max_attempts: 3, initial: 1h } }
"#;

/// Copies pages up to `stop`, starting from the checkpoint of the last call.
async fn copy(cx: &Context, stop: u32) -> Result<Vec<u32>, HandlerError> {
    let mut page: u32 = cx.checkpoint()?.unwrap_or(0);
    let from = page;
    while page < stop {
        page += 1;
        cx.save_checkpoint(page).await?;
    }
    Ok(vec![from, page])
}

#[tokio::test]
async fn the_next_attempt_goes_on_at_the_checkpoint() {
    let switchyard = TestSwitchyard::new().handler("copy", |_: (), cx: Context| async move {
        let copied = copy(&cx, cx.attempt() * 10).await?;
        if cx.attempt() < 3 { Err(HandlerError::retryable("busy", "")) } else { Ok(copied) }
    });
    let run = switchyard.start(COPY, ()).await.unwrap();
    assert_eq!(run.run_to_end::<Vec<u32>>().await.unwrap().output(), Ok(vec![20, 30]));
}

#[tokio::test]
async fn the_next_process_goes_on_at_the_checkpoint() {
    let reached = Arc::new(Notify::new());
    let tell = reached.clone();
    let switchyard = TestSwitchyard::new().handler("copy", move |_: (), cx: Context| {
        let tell = tell.clone();
        async move {
            let copied = copy(&cx, 7).await?;
            if copied[0] == 0 {
                tell.notify_one();
                std::future::pending::<()>().await;
            }
            Ok((cx.attempt(), copied))
        }
    });
    let run = switchyard.start(COPY, ()).await.unwrap();
    reached.notified().await;
    let run = run.restart().await.unwrap();
    assert_eq!(run.run_to_end::<Value>().await.unwrap().output(), Ok(json!([1, [7, 7]])), "the same attempt");
}

#[tokio::test]
async fn a_checkpoint_of_another_type_is_a_failure_for_good() {
    let switchyard = TestSwitchyard::new().handler("copy", |_: (), cx: Context| async move {
        if let Some(page) = cx.checkpoint::<u32>()? {
            return Ok(page);
        }
        cx.save_checkpoint("page one").await?;
        Err(HandlerError::retryable("busy", ""))
    });
    let run = switchyard.start(COPY, ()).await.unwrap();
    let failure = run.run_to_end::<u32>().await.unwrap().output().unwrap_err();
    assert_eq!((failure.code(), failure.error.attempt), ("checkpoint", Some(2)));
}

async fn chunks(run: &TestRun) -> Vec<Value> {
    let events = run.switchyard().engine().history().events(run.id(), 0, None).await.unwrap();
    let mut seen = Vec::new();
    for event in events {
        if let EventKind::NodeChunks { chunks, .. } = event.kind {
            for chunk in &chunks {
                seen.push(run.switchyard().engine().payloads().load(chunk).await.unwrap());
            }
        }
    }
    seen
}

#[tokio::test]
async fn chunks_are_kept_in_order_before_the_result_is() {
    let switchyard = TestSwitchyard::new().handler("copy", |_: (), cx: Context| async move {
        for token in 0..2_000 {
            cx.stream(token).await?;
        }
        Ok(())
    });
    let run = switchyard.start(COPY, ()).await.unwrap();
    assert!(run.run_to_end::<()>().await.unwrap().succeeded());
    let expected: Vec<Value> = (0..2_000).map(Value::from).collect();
    assert_eq!(chunks(&run).await, expected);
    let events = run.switchyard().engine().history().events(run.id(), 0, None).await.unwrap();
    assert!(events.len() < 200, "many chunks share an event: {} events", events.len());
}

#[tokio::test]
async fn a_chunk_that_is_too_large_is_refused_and_the_others_are_kept() {
    let switchyard = TestSwitchyard::new().handler("copy", |_: (), cx: Context| async move {
        cx.stream("small").await?;
        let refused = cx.stream("x".repeat(5_000)).await.unwrap_err();
        Ok(format!("{refused}"))
    });
    let run = switchyard.start(COPY, ()).await.unwrap();
    let said = run.run_to_end::<String>().await.unwrap().output().unwrap();
    assert_eq!(said, "a chunk has 5002 bytes, more than the 4096 it may have (refused)");
    assert_eq!(chunks(&run).await, ["small"]);
}

#[tokio::test]
async fn a_handler_that_listens_comes_to_an_end_of_its_own() {
    let (begun, cleaned) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, bell) = (begun.clone(), cleaned.clone());
    let switchyard = TestSwitchyard::new().handler("copy", move |_: (), cx: Context| {
        let (tell, bell) = (tell.clone(), bell.clone());
        async move {
            let stop = cx.cancellation();
            tell.notify_one();
            stop.cancelled().await;
            // Code after an await: it would not run if the handler were dropped.
            tokio::task::yield_now().await;
            bell.notify_one();
            Err::<(), _>(HandlerError::retryable("stopped", ""))
        }
    });
    let run = switchyard.start(COPY, ()).await.unwrap();
    begun.notified().await;
    run.cancel("me", "").await.unwrap();
    cleaned.notified().await;
    run.look().await.unwrap().assert_status(RunStatus::Cancelled).assert_node("copy", NodeState::Cancelled);
}

#[tokio::test]
async fn a_heartbeat_says_that_the_run_is_being_closed() {
    let (begun, cancelled) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, go) = (begun.clone(), cancelled.clone());
    let switchyard = TestSwitchyard::new().handler("copy", move |_: (), cx: Context| {
        let (tell, go) = (tell.clone(), go.clone());
        async move {
            assert!(!cx.is_cancelled());
            cx.heartbeat().await?;
            tell.notify_one();
            go.notified().await;
            cx.heartbeat().await?;
            Ok(cx.is_cancelled())
        }
    });
    let run = switchyard.start(COPY, ()).await.unwrap();
    begun.notified().await;
    run.cancel("me", "").await.unwrap();
    cancelled.notify_one();
    // The handler's result is stored, and the run is cancelled nevertheless.
    let seen = run.look().await.unwrap();
    seen.assert_status(RunStatus::Cancelled);
    assert_eq!(run.switchyard().view(run.id()).await.unwrap().nodes.0[0].1.output.get(), "true");
}

/// The log lines of each attempt, as `level message`.
async fn logged(run: &TestRun) -> Vec<(u32, Vec<String>)> {
    let history = run.switchyard().engine().history();
    let page = history.logs(run.id(), 0, &LogFilter::default(), 10_000).await.unwrap();
    assert!(page.ended && page.next.is_none());
    let mut seen: Vec<(u32, Vec<String>)> = Vec::new();
    for logged in page.logs {
        let lines = logged.lines.iter().map(|line| {
            let level = line.level.map_or("-", LogLevel::as_str);
            format!("{level} {}", line.message)
        });
        match seen.last_mut() {
            Some((attempt, known)) if *attempt == logged.attempt => known.extend(lines),
            _ => seen.push((logged.attempt, lines.collect())),
        }
    }
    seen
}

#[tokio::test]
async fn what_a_handler_logs_is_kept_with_its_attempt_also_if_it_fails() {
    let switchyard = TestSwitchyard::new().handler("copy", |_: (), cx: Context| async move {
        cx.log("begins");
        cx.log_at(LogLevel::Warn, "two\nlines");
        if cx.attempt() == 1 { Err(HandlerError::retryable("busy", "")) } else { Ok(()) }
    });
    let run = switchyard.start(COPY, ()).await.unwrap();
    assert!(run.run_to_end::<()>().await.unwrap().succeeded());
    let lines: Vec<String> = ["info begins", "warn two", "warn lines"].map(str::to_owned).to_vec();
    assert_eq!(logged(&run).await, [(1, lines.clone()), (2, lines)]);
}
