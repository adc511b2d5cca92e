//! What holds for every request: it ends in time, a panic is an answer, and a client that goes away does not stop
//! half of what it asked for.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;

use crate::ServerState;
use crate::access;
use crate::cors;
use crate::problem::Problem;
use crate::routes::tasks::WAIT_MAX;

/// Cancelled when the client has gone.
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
        Ok(()) => carry_through(request, next, state.limits.request_max).await,
    };
    if let Some(origin) = listed {
        cors::admit(origin, &mut response);
    }
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    state.metrics.request(route, method, response.status().as_u16(), begun.elapsed());
    response
}

/// Unknown methods are counted as one: clients can invent any number.
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

async fn carry_through(mut request: Request, next: Next, request_max: Duration) -> Response {
    let gone = CancellationToken::new();
    request.extensions_mut().insert(ClientGone(gone.clone()));
    let _dropped_with_the_connection = gone.drop_guard();
    // Spawned: the server drops this future when the client goes away, and what has begun must be carried through
    // (a change is durable before those who follow the run are told of it).
    let work = tokio::spawn(next.run(request));
    match tokio::time::timeout(request_max + WAIT_MAX, work).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Problem::internal("internal", &panic).into_response(),
        Err(_) => Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "the request took too long")
            .hint("it may still be carried out; repeat it only with the `Idempotency-Key` that it was sent with")
            .into_response(),
    }
}
