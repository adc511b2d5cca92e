//! Connections: accepted, held to limits, and let go in order.

use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::{Access, ServerState, router};

/// How long a request's headers may take: whoever sends them byte by byte is cut off.
const HEADERS_WAIT_MAX: Duration = Duration::from_secs(15);

/// After `accept` failed, which it does when there are too many open files.
const AFTER_TROUBLE: Duration = Duration::from_millis(100);

/// Serves until `shutdown` resolves; then no connection is taken, streams and long polls end, and requests under
/// way are finished.
pub async fn serve(listener: TcpListener, state: ServerState, shutdown: impl Future<Output = ()>) {
    let loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let state = if loopback { state } else { state.with_access(Access::Keys) };
    let (stop, sockets, grace) = (state.stop.clone(), state.sockets.clone(), state.limits.grace);
    let router = router(state);
    let connections = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => attend(stream, router.clone(), &connections),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(AFTER_TROUBLE).await;
                }
            },
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    stop.cancel();
    sockets.close();
    let all_ended = async { tokio::join!(connections.shutdown(), sockets.wait()) };
    if tokio::time::timeout(grace, all_ended).await.is_err() {
        tracing::warn!("some requests did not end in time and are given up");
    }
}

fn attend(stream: TcpStream, router: Router, connections: &GracefulShutdown) {
    // Answers are small and wanted at once.
    let _ = stream.set_nodelay(true);
    // HTTP/1.1 alone: finding out which version a client speaks would wait for its first bytes without end.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_WAIT_MAX);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        // Connections break; that is the client's business.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection broke");
        }
    });
}
