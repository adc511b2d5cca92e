//! A TCP proxy that can be told to drop everything: how a network fails, on one machine.

use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The server that connections are forwarded to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Port(u16),
    Socket(PathBuf),
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// Counts the cuts: a connection that began before the newest is dropped.
    cuts: watch::Sender<u64>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn before(target: Target) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let cuts = watch::Sender::new(0);
        let accepting = tokio::spawn(accept(listener, target, cuts.clone()));
        Ok(Self { port, cuts, accepting })
    }

    /// Drops every connection there is. New ones are let through.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, target: Target, cuts: watch::Sender<u64>) {
    while let Ok((client, _)) = listener.accept().await {
        let (mut cut, target) = (cuts.subscribe(), target.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = carry(client, target) => {}
                _ = cut.changed() => {}
            }
        });
    }
}

/// A target that is down is a connection that closes at once.
async fn carry(client: TcpStream, target: Target) {
    match target {
        Target::Port(port) => {
            if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                between(client, server).await;
            }
        }
        Target::Socket(path) => {
            if let Ok(server) = UnixStream::connect(path).await {
                between(client, server).await;
            }
        }
    }
}

async fn between(mut client: TcpStream, mut server: impl AsyncRead + AsyncWrite + Unpin) {
    let _ = client.set_nodelay(true);
    let _ = copy_bidirectional(&mut client, &mut server).await;
}
