//! `GET /metrics`, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::ServerState;
use crate::api::Api;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn register(api: &mut Api) {
    let content = json!({ "application/openmetrics-text": { "schema": { "type": "string" } } });
    let metrics = api.operation("health", "metrics", "What is counted, in the text format of OpenMetrics");
    api.get("/metrics", metrics.answer_as(200, "The metrics", content), metrics_page);
}

/// The metrics page. It omits the store's gauges if the store does not answer, because operators need the rest then.
async fn metrics_page(State(state): State<ServerState>) -> Response {
    let gauges = match state.engine.gauges().await {
        Ok(gauges) => Some(gauges),
        Err(error) => {
            tracing::debug!(%error, "metrics without those of the store");
            None
        }
    };
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], state.metrics.page(gauges.as_ref())).into_response()
}
