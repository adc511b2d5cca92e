//! `GET /metrics`, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::ServerState;
use crate::api::Api;
use crate::metrics::Page;
use crate::problem::Problem;

pub(super) fn register(api: &mut Api) {
    let content = json!({ "text/plain": { "schema": { "type": "string" } } });
    let metrics = api.operation("health", "metrics", "What is counted, in the text format of Prometheus");
    api.get("/metrics", metrics.answer_as(200, "The metrics", content), metrics_page);
}

async fn metrics_page(State(state): State<ServerState>) -> Result<Response, Problem> {
    let hot = state.engine.hot();
    let (size, queues) = (hot.size().await?, hot.queues().await?);
    let mut page = Page::default();
    page.about("switchyard_runs_in_flight", "gauge", "Runs that have not ended");
    page.sample("switchyard_runs_in_flight", &[], size.runs as f64);
    page.about("switchyard_timers", "gauge", "Timers that are set");
    page.sample("switchyard_timers", &[], size.timers as f64);
    page.about("switchyard_queue_depth", "gauge", "Tasks that wait for a worker");
    for depth in &queues {
        for (priority, count) in [("high", depth.high), ("normal", depth.normal), ("low", depth.low)] {
            let labels = [("queue", &*depth.queue), ("priority", priority)];
            page.sample("switchyard_queue_depth", &labels, count as f64);
        }
    }
    if let Some(bytes) = resident_bytes() {
        page.about(
            "process_resident_memory_bytes",
            "gauge",
            "Memory of this process, as the kernel counts it",
        );
        page.sample("process_resident_memory_bytes", &[], bytes);
    }
    state.metrics.write(&mut page);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.finish()).into_response())
}

/// None where there is no `/proc`.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}
