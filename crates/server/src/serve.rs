//! Accepts connections, applies limits to them, and closes them gracefully.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use hyper::server::conn::http1::Builder;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::routes::health_router;
use crate::strict_lines::StrictLines;
use crate::{Access, ServerState, router};

/// The pause after `accept` failed, which happens when the process has too many open files.
const AFTER_TROUBLE: Duration = Duration::from_millis(100);

/// Serves the API until `shutdown` resolves. Then it accepts no more connections, ends streams and long polls, and
/// waits for the requests in progress.
pub async fn serve(listener: TcpListener, state: ServerState, shutdown: impl Future<Output = ()>) {
    let loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let state = if loopback { state } else { state.with_access(Access::Keys) };
    attend_all(listener, router(state.clone()), state, shutdown).await;
}

/// Serves only the health and metrics routes, for a process that has no API.
pub async fn serve_health(listener: TcpListener, state: ServerState, shutdown: impl Future<Output = ()>) {
    attend_all(listener, health_router(state.clone()), state, shutdown).await;
}

async fn attend_all(
    listener: TcpListener,
    router: Router,
    state: ServerState,
    shutdown: impl Future<Output = ()>,
) {
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => attend(stream, router.clone(), &state),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(AFTER_TROUBLE).await;
                }
            },
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    state.stop.cancel();
    state.connections.close();
    if tokio::time::timeout(state.limits.grace, state.connections.wait()).await.is_err() {
        tracing::warn!("some requests did not end in time and are given up");
    }
}

fn attend(stream: TcpStream, router: Router, state: &ServerState) {
    // Responses are small, and clients wait for them.
    let _ = stream.set_nodelay(true);
    // HTTP/1.1 only: detecting the version would wait for the client's first bytes without a time limit.
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(state.limits.headers_wait_max);
    let is_upgraded = Arc::new(AtomicBool::new(false));
    let stream = StrictLines::new(stream, is_upgraded.clone());
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        let (answering, is_upgraded) = (router.call(request), is_upgraded.clone());
        async move {
            let response = answering.await?;
            // Set before the response is sent, and therefore before the client switches protocols.
            is_upgraded.fetch_or(response.status() == StatusCode::SWITCHING_PROTOCOLS, Ordering::Relaxed);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let stop = state.stop.clone();
    state.connections.spawn(async move {
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // Clients may break connections at any time: this is not a fault of the server.
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    });
}
