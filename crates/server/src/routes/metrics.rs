//! `GET /metrics`, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use switchyard_observe::Gauges;
use switchyard_store::PRIORITIES;

use crate::ServerState;
use crate::api::Api;
use crate::problem::Problem;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn register(api: &mut Api) {
    let content = json!({ "application/openmetrics-text": { "schema": { "type": "string" } } });
    let metrics = api.operation("health", "metrics", "What is counted, in the text format of OpenMetrics");
    api.get("/metrics", metrics.answer_as(200, "The metrics", content), metrics_page);
}

async fn metrics_page(State(state): State<ServerState>) -> Result<Response, Problem> {
    let hot = state.engine.hot();
    let (size, queues) = (hot.size().await?, hot.queues().await?);
    let depths = queues.iter().flat_map(|depth| {
        let lanes = PRIORITIES.iter().zip(depth.lanes);
        lanes.map(|(priority, lane)| (depth.queue.clone(), *priority, lane.waiting))
    });
    let gauges = Gauges { runs: size.runs, timers: size.timers, depths: depths.collect() };
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], state.metrics.page(&gauges)).into_response())
}
