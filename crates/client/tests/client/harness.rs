//! A real server on a free port, and a proxy that cuts connections.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use switchyard_client::Client;
use switchyard_host::embedded::{Embedded, Options};
use switchyard_server::{ServerState, serve};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) fixture: Embedded,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    data: PathBuf,
    folder: TempDir,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::open(folder.path().to_owned(), folder, listener).await
    }

    async fn open(data: PathBuf, folder: TempDir, listener: TcpListener) -> Self {
        let mut options = Options::new(Path::new(&data));
        options.leave_functions = true;
        let fixture = Embedded::open(options).await.unwrap();
        fixture.work();
        let state =
            ServerState::new(fixture.engine().clone(), fixture.services().clone()).of_store(fixture.id());
        let stop = CancellationToken::new();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, state, stop.clone().cancelled_owned()));
        Self { address, fixture, stop, serving, data, folder }
    }

    /// Restarts the server with the same folder and port.
    pub(crate) async fn restart(self) -> Self {
        let Self { address, fixture, stop, serving, data, folder } = self;
        stop.cancel();
        serving.await.unwrap();
        fixture.shut_down(Duration::ZERO).await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        Self::open(data, folder, socket.listen(128).unwrap()).await
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.address)).unwrap()
    }
}

/// A proxy that forwards up to `bytes_max` bytes of each response, a different number each time, and then disconnects.
pub(crate) async fn cutting_proxy(upstream: SocketAddr, bytes_max: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for turn in 1.. {
            let (client, _) = listener.accept().await.unwrap();
            tokio::spawn(pass(client, upstream, 1 + turn * 7_919 % bytes_max));
        }
    });
    address
}

async fn pass(client: TcpStream, upstream: SocketAddr, mut bytes: usize) {
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut buffer = [0; 512];
    while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
        let now = read.min(bytes);
        if to_client.write_all(&buffer[..now]).await.is_err() || now < read {
            break;
        }
        bytes -= now;
    }
    up.abort();
}

pub(crate) fn hello() -> Value {
    json!({
        "name": "hello",
        "nodes": { "greet": { "type": "transform", "value": "Hello, ${{ input.name }}!" } },
    })
}

/// A workflow with one node for a worker over HTTP.
pub(crate) fn double() -> Value {
    let node = json!({ "type": "function", "function": "double", "input": "${{ input }}" });
    json!({ "name": "double", "nodes": { "double": node } })
}

/// A workflow that waits for the signal `go`.
pub(crate) fn gate() -> Value {
    json!({ "name": "gate", "nodes": { "gate": { "type": "wait", "signal": "go" } } })
}
