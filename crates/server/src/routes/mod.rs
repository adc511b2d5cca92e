//! The routes, one file for each resource. `api` registers all of them with their documentation.

mod approvals;
mod bulk;
mod control;
mod dead_letters;
mod events;
mod health;
mod keys;
mod logs;
mod metrics;
mod patches;
mod queues;
mod runs;
mod schedules;
mod server;
mod socket;
pub(crate) mod tasks;
mod waits;
mod workers;
mod workflows;

use axum::http::StatusCode;
use axum::{Json, Router, middleware};

use crate::ServerState;
use crate::api::Api;
use crate::guard::guard;
use crate::problem::Problem;

pub(crate) fn api() -> Api {
    let mut api = Api::new();
    runs::register(&mut api);
    control::register(&mut api);
    bulk::register(&mut api);
    events::register(&mut api);
    logs::register(&mut api);
    socket::register(&mut api);
    patches::register(&mut api);
    approvals::register(&mut api);
    workflows::register(&mut api);
    schedules::register(&mut api);
    tasks::register(&mut api);
    waits::register(&mut api);
    workers::register(&mut api);
    queues::register(&mut api);
    dead_letters::register(&mut api);
    keys::register(&mut api);
    server::register(&mut api);
    health::register(&mut api);
    metrics::register(&mut api);
    api
}

/// All routes of a server.
pub fn router(state: ServerState) -> Router {
    let (router, document) = api().finish();
    router
        .route("/openapi.json", axum::routing::get(async move || Json(document)))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(state.clone(), guard))
        .with_state(state)
}

/// The health and metrics routes, for a process without an API. They reveal nothing about single runs, so they need
/// no key.
pub(crate) fn health_router(state: ServerState) -> Router {
    let mut api = Api::new();
    health::register(&mut api);
    metrics::register(&mut api);
    api.finish().0.fallback(unknown_route).with_state(state)
}

async fn unknown_route() -> Problem {
    Problem::not_found("unknown_route", "there is nothing at this address")
        .hint("GET /openapi.json lists what there is")
}

async fn wrong_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "this address does not take that method")
}
