//! What holds for every request: it ends in time, a panic is an answer, and a client that goes away does not stop
//! half of what it asked for.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;

use crate::ServerState;
use crate::problem::Problem;
use crate::routes::tasks::WAIT_MAX;

/// How long a request may take; one that waits for work, that much longer than its wait.
const REQUEST_MAX: Duration = Duration::from_secs(60);

/// Cancelled when nobody waits for the answer any more.
#[derive(Clone, Debug)]
pub(crate) struct ClientGone(pub(crate) CancellationToken);

pub(crate) async fn guard(State(state): State<ServerState>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = known(request.method());
    let begun = tokio::time::Instant::now();
    let response = match strange_name(request.headers()) {
        Some(name) => foreign(name).into_response(),
        None => carry_through(request, next).await,
    };
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    state.metrics.request(route, method, response.status().as_u16(), begun.elapsed());
    response
}

/// A name in `Host` or `Origin` that is not this machine's. The server listens on loopback only, so such a request
/// comes from a web page whose name was made to point here, which must not command what runs on this machine.
fn strange_name(headers: &HeaderMap) -> Option<&str> {
    [header::HOST, header::ORIGIN]
        .into_iter()
        .filter_map(|name| headers.get(name))
        .map(|value| value.to_str().unwrap_or("?"))
        .find(|value| !is_loopback(value))
}

fn is_loopback(authority: &str) -> bool {
    let authority = authority.split_once("://").map_or(authority, |(_, rest)| rest);
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(host, _)| host),
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn foreign(name: &str) -> Problem {
    let shown: String = name.chars().take(100).collect();
    Problem::new(StatusCode::FORBIDDEN, "foreign_host", format!("`{shown}` is not a name of this machine"))
        .hint("use http://127.0.0.1 or http://localhost with the server's port")
}

/// Anybody can invent methods: they are counted as one.
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

async fn carry_through(mut request: Request, next: Next) -> Response {
    let gone = CancellationToken::new();
    request.extensions_mut().insert(ClientGone(gone.clone()));
    let _dropped_with_the_connection = gone.drop_guard();
    // Spawned: the server drops this future when the client goes away, and what has begun must be carried through
    // (a change is durable before those who follow the run are told of it).
    let work = tokio::spawn(next.run(request));
    match tokio::time::timeout(REQUEST_MAX + WAIT_MAX, work).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Problem::internal("internal", &panic).into_response(),
        Err(_) => Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "the request took too long")
            .hint("it may still be carried out; look before you repeat it")
            .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for own in ["localhost:7070", "127.0.0.1:7070", "127.9.9.9", "[::1]:7070", "http://localhost:7070"] {
            assert!(is_loopback(own), "{own}");
        }
        for foreign in ["evil.example:7070", "localhost.evil.example", "null", "http://10.0.0.1", "[::2]", ""]
        {
            assert!(!is_loopback(foreign), "{foreign}");
        }
    }
}
