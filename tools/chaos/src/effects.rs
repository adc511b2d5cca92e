//! The external service that `http` nodes call. It counts the calls of each node.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

type Counts = Arc<Mutex<HashMap<String, u32>>>;

pub(crate) struct Effects {
    counts: Counts,
    port: u16,
    serving: JoinHandle<()>,
}

#[derive(Deserialize)]
struct Wanted {
    /// Number of calls that are refused before one succeeds.
    #[serde(default)]
    refuse: u32,
    /// Duration of an answer in milliseconds: its caller may be gone by then.
    #[serde(default)]
    takes: u64,
}

impl Effects {
    pub(crate) async fn serve() -> anyhow::Result<Self> {
        let counts = Counts::default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let router = Router::new().route("/effect", post(effect)).with_state(counts.clone());
        let serving = tokio::spawn(async move {
            // Serving ends with the process.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { counts, port, serving })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/effect", self.port)
    }

    /// Number of calls for each idempotency key, `<run>/<node>`.
    pub(crate) fn counts(&self) -> HashMap<String, u32> {
        self.counts.lock().clone()
    }
}

impl Drop for Effects {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn effect(
    State(counts): State<Counts>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<&'static str, StatusCode> {
    let key =
        headers.get("idempotency-key").and_then(|key| key.to_str().ok()).ok_or(StatusCode::BAD_REQUEST)?;
    let count = {
        let mut counts = counts.lock();
        let count = counts.entry(key.to_owned()).or_default();
        *count += 1;
        *count
    };
    tokio::time::sleep(Duration::from_millis(wanted.takes)).await;
    if count <= wanted.refuse { Err(StatusCode::SERVICE_UNAVAILABLE) } else { Ok("done") }
}
