//! Middleware around every request: limits its time, turns a panic into an error response, and completes the work of a
//! client that disconnects.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;

use crate::ServerState;
use crate::access;
use crate::cors;
use crate::extract::ChangeId;
use crate::problem::Problem;
use crate::routes::tasks::{CLAIM, WAIT_MAX};

/// Cancelled when the client has disconnected.
#[derive(Clone, Debug)]
pub(crate) struct ClientGone(pub(crate) CancellationToken);

pub(crate) async fn guard(State(state): State<ServerState>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = known(request.method());
    let begun = tokio::time::Instant::now();
    let listed = cors::listed(&state.cors_origins, request.headers());
    let mut response = match access::enter(&state, &mut request).await {
        _ if listed.is_some() && cors::is_preflight(&request) => cors::preflight(),
        Err(problem) => problem.into_response(),
        Ok(()) => {
            let waits_for_work = route.as_ref().is_some_and(|route| route.as_str() == CLAIM);
            let wait_max = if waits_for_work { WAIT_MAX } else { Duration::ZERO };
            carry_through(request, next, state.limits.request_max + wait_max).await
        }
    };
    if let Some(origin) = listed {
        cors::admit(origin, &mut response);
    }
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    state.metrics.request(route, method, response.status().as_u16(), begun.elapsed());
    response
}

/// The method as a metric label. Unknown methods share one label, because clients can invent any number of them.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

async fn carry_through(mut request: Request, next: Next, time_max: Duration) -> Response {
    let gone = CancellationToken::new();
    request.extensions_mut().insert(ClientGone(gone.clone()));
    let _dropped_with_the_connection = gone.drop_guard();
    let change = ChangeId::default();
    request.extensions_mut().insert(change.clone());
    // Spawned, because hyper drops this future when the client disconnects, and the handler must still complete: a
    // change is durable before the engine notifies followers of the run.
    let work = tokio::spawn(next.run(request));
    let problem = match tokio::time::timeout(time_max, work).await {
        Ok(Ok(response)) => return response,
        Ok(Err(panic)) => Problem::internal("internal", &panic).of_change(change.get()),
        Err(_) => match change.get() {
            Some(id) => Problem::outcome_unknown(id, &"the request took too long"),
            None => Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "the request took too long"),
        },
    };
    problem.into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::routing::post;
    use axum::{Router, middleware};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use serde_json::Value;

    use super::*;
    use crate::extract::Operation;

    /// Routes that hang or panic, with and without the id of a change.
    fn routes() -> Router {
        let hangs = async |_: Operation| std::future::pending::<()>().await;
        let panics = async |_: Operation| -> () { panic!("as meant") };
        let asks = async || std::future::pending::<()>().await;
        let guarded = middleware::from_fn(async |request, next| {
            carry_through(request, next, Duration::from_millis(20)).await
        });
        let router = Router::new().route("/hangs", post(hangs)).route("/panics", post(panics));
        router.route("/asks", post(asks)).layer(guarded)
    }

    async fn answer(path: &str, key: Option<&str>) -> (u16, Value) {
        let mut request = Request::post(path);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let request = request.body(Body::empty()).unwrap();
        let response = TowerToHyperService::new(routes()).call(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_change_without_an_outcome_is_named_and_not_said_to_be_undone() {
        for (path, expected) in [("/hangs", (503, "outcome_unknown")), ("/panics", (500, "internal"))] {
            for key in [Some("order-7"), None] {
                let (status, problem) = answer(path, key).await;
                assert_eq!((status, problem["code"].as_str().unwrap()), expected);
                let operation = problem["operation"].as_str().unwrap();
                assert!(key.map_or(operation.starts_with("op_"), |key| operation == key), "{problem}");
                let hint = problem["hint"].as_str().unwrap();
                assert!(hint.contains(&format!("`Idempotency-Key: {operation}`")), "{hint}");
            }
        }
        let (status, problem) = answer("/asks", Some("order-7")).await;
        assert_eq!((status, &problem["code"], &problem["operation"]), (504, &"timeout".into(), &Value::Null));
    }
}
