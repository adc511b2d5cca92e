//! `GET /metrics`, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use switchyard_observe::{Behind, Gauges};
use switchyard_store::{HotStore, PRIORITIES, StoreError};

use crate::ServerState;
use crate::api::Api;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn register(api: &mut Api) {
    let content = json!({ "application/openmetrics-text": { "schema": { "type": "string" } } });
    let metrics = api.operation("health", "metrics", "What is counted, in the text format of OpenMetrics");
    api.get("/metrics", metrics.answer_as(200, "The metrics", content), metrics_page);
}

/// A store that does not answer is when it matters most that the rest is shown.
async fn metrics_page(State(state): State<ServerState>) -> Response {
    let gauges = match gauges(state.engine.hot().as_ref()).await {
        Ok(gauges) => Some(gauges),
        Err(error) => {
            tracing::debug!(%error, "metrics without those of the store");
            None
        }
    };
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], state.metrics.page(gauges.as_ref())).into_response()
}

async fn gauges(hot: &dyn HotStore) -> Result<Gauges, StoreError> {
    let (size, queues, unarchived) = (hot.size().await?, hot.queues().await?, hot.unarchived().await?);
    let depths = queues.iter().flat_map(|depth| {
        let bands = PRIORITIES.iter().zip(depth.bands);
        bands.map(|(priority, band_depth)| (depth.queue.clone(), *priority, band_depth.waiting))
    });
    let behind = unarchived.map(|unarchived| Behind {
        changes: unarchived.changes,
        oldest: unarchived.oldest,
        stuck: unarchived.stuck.is_some(),
    });
    Ok(Gauges { runs: size.runs, timers: size.timers, depths: depths.collect(), behind })
}
