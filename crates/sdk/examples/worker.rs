//! A worker and a client of a server, in one program: `switchyard up` in one terminal, and in another
//! `cargo run -p switchyard-sdk --example worker`.
//!
//! The handler saves checkpoints: kill this program while it counts, start it again, and it continues from there.

use std::time::Duration;

use serde_json::json;
use switchyard_sdk::{Context, HandlerError, Switchyard, Worker};

const WORKFLOW: &str = r#"
name: count
nodes:
  count:
    type: function
    function: count
    input: { to: "${{ input.to }}", pause_ms: "${{ input.pause_ms }}" }
"#;

#[derive(serde::Deserialize)]
struct Count {
    to: u32,
    pause_ms: u64,
}

async fn count(input: Count, cx: Context) -> Result<u32, HandlerError> {
    let mut counted: u32 = cx.checkpoint()?.unwrap_or(0);
    while counted < input.to {
        if cx.is_cancelled() {
            return Err(HandlerError::retryable("stopped", "its result is no longer wanted"));
        }
        tokio::time::sleep(Duration::from_millis(input.pause_ms)).await;
        counted += 1;
        cx.save_checkpoint(counted).await?;
        // Followers of the run see the number at once.
        cx.stream(counted).await?;
    }
    Ok(counted)
}

/// Counts on the server at this address. Returns the streamed output and the result.
pub(crate) async fn count_at(url: &str, to: u32, pause_ms: u64) -> anyhow::Result<(Vec<String>, u32)> {
    let worker = Worker::connect(url).handler("count", count).start().await?;
    let switchyard = Switchyard::connect(url).open().await?;
    let run = switchyard.submit(WORKFLOW, json!({ "to": to, "pause_ms": pause_ms })).await?;
    let mut seen = Vec::new();
    let mut events = switchyard.follow(run, 0);
    while let Some(event) = events.next().await? {
        seen.extend(event.chunks().iter().map(ToString::to_string));
    }
    let outcome = switchyard.wait::<u32>(run).await?;
    worker.shut_down().await;
    Ok((seen, outcome.output()?))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is what it is an example of")]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let (seen, counted) = count_at(&url, 10, 200).await?;
    println!("saw {}, counted to {counted}", seen.join(" "));
    Ok(())
}
