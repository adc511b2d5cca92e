//! Connections: accepted, held to limits, and let go in order.

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

/// After `accept` failed, which it does when there are too many open files.
const AFTER_TROUBLE: Duration = Duration::from_millis(100);

/// Serves until `shutdown` resolves; then no connection is taken, streams and long polls end, and requests under
/// way are finished.
pub async fn serve(listener: TcpListener, state: ServerState, shutdown: impl Future<Output = ()>) {
    let loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let state = if loopback { state } else { state.with_access(Access::Keys) };
    attend_all(listener, router(state.clone()), state, shutdown).await;
}

/// Serves only what supervisors and Prometheus ask, of a process that has no API.
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
    // Answers are small and wanted at once.
    let _ = stream.set_nodelay(true);
    // HTTP/1.1 alone: finding out which version a client speaks would wait for its first bytes without end.
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(state.limits.headers_wait_max);
    let is_upgraded = Arc::new(AtomicBool::new(false));
    let stream = StrictLines::new(stream, is_upgraded.clone());
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        let (answering, is_upgraded) = (router.call(request), is_upgraded.clone());
        async move {
            let response = answering.await?;
            // Before it is sent, and so before the client speaks another protocol.
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
        // Connections break; that is the client's business.
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    });
}
