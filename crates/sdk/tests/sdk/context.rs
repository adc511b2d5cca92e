//! The context of a handler's call.

use std::sync::{Arc, Mutex};

use switchyard_sdk::testing::TestSwitchyard;
use switchyard_sdk::{Context, HandlerError};

const TWICE: &str = r#"
name: t
nodes:
  note: { type: function, function: note, retry: { max_attempts: 2, initial: 1h } }
"#;

#[tokio::test]
async fn attempts_count_and_the_idempotency_key_stays() {
    let calls: Arc<Mutex<Vec<(u32, String)>>> = Arc::default();
    let noted = calls.clone();
    let switchyard =
        TestSwitchyard::new().handler("note", move |_: (), cx: Context| {
            noted.lock().unwrap().push((cx.attempt(), cx.idempotency_key().to_owned()));
            async move {
                if cx.attempt() == 1 { Err(HandlerError::retryable("again", "")) } else { Ok(cx.run_id()) }
            }
        });
    let run = switchyard.start(TWICE, ()).await.unwrap();
    assert_eq!(run.run_to_end().await.unwrap().output(), Ok(run.id()));
    let key = format!("{}/note", run.id());
    assert_eq!(*calls.lock().unwrap(), [(1, key.clone()), (2, key)]);
}
