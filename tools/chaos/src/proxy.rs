//! A TCP proxy that simulates network failures on one machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Time for a server to carry out a request whose answer is lost.
const CARRIED_OUT: Duration = Duration::from_millis(50);

/// The server that connections are forwarded to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Port(u16),
    Socket(PathBuf),
}

/// How the proxy treats the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Through,
    /// Requests are forwarded, their answers are not, and the connection is cut.
    AnswersLost,
    /// Like `AnswersLost`, but the connection stays open: callers run into their time-outs.
    Mute,
    /// Requests are forwarded after this delay.
    Slow(Duration),
}

#[derive(Clone, Debug)]
struct State {
    /// A connection that began before the newest cut is dropped.
    cuts: u64,
    behaviour: Behaviour,
    target: Target,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: watch::Sender<State>,
    counts: Arc<Counts>,
    accepting: JoinHandle<()>,
}

/// Counters of the proxy's effects.
#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    /// Requests whose answer was lost, or that were delayed.
    disturbed: AtomicU64,
}

impl Proxy {
    pub(crate) async fn before(target: Target) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let state = watch::Sender::new(State { cuts: 0, behaviour: Behaviour::Through, target });
        let counts = Arc::<Counts>::default();
        let accepting = tokio::spawn(accept(listener, state.clone(), counts.clone()));
        Ok(Self { port, state, counts, accepting })
    }

    /// Drops every open connection, and returns how many. New ones are forwarded.
    pub(crate) fn cut(&self) -> u64 {
        let connections = self.state.receiver_count() / RECEIVERS;
        self.state.send_modify(|state| state.cuts += 1);
        connections as u64
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// Number of disturbed requests so far.
    pub(crate) fn disturbed(&self) -> u64 {
        self.counts.disturbed.load(Ordering::Relaxed)
    }

    pub(crate) fn behave(&self, behaviour: Behaviour) {
        self.state.send_modify(|state| state.behaviour = behaviour);
    }

    /// Forwards new connections to this target; drops all existing ones.
    pub(crate) fn lead_to(&self, target: Target) {
        self.state.send_modify(|state| {
            state.target = target;
            state.cuts += 1;
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

/// Number of state receivers that each connection holds.
const RECEIVERS: usize = 2;

async fn accept(listener: TcpListener, state: watch::Sender<State>, counts: Arc<Counts>) {
    while let Ok((client, _)) = listener.accept().await {
        counts.connections.fetch_add(1, Ordering::Relaxed);
        let counts = counts.clone();
        let mut changes = state.subscribe();
        let State { cuts, target, .. } = changes.borrow_and_update().clone();
        let behaviour = state.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                () = carry(client, target, behaviour, &counts) => {}
                _ = changes.wait_for(|state| state.cuts != cuts) => {}
            }
        });
    }
}

/// Forwards a connection. If the target is down, the connection closes at once.
async fn carry(client: TcpStream, target: Target, state: watch::Receiver<State>, counts: &Counts) {
    let _ = client.set_nodelay(true);
    match target {
        Target::Port(port) => {
            if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                let _ = server.set_nodelay(true);
                between(client, server, &state, counts).await;
            }
        }
        Target::Socket(path) => {
            if let Ok(server) = UnixStream::connect(path).await {
                between(client, server, &state, counts).await;
            }
        }
    }
}

/// Forwards both directions until one side closes, or an answer was lost.
async fn between(
    client: TcpStream,
    server: impl AsyncRead + AsyncWrite,
    state: &watch::Receiver<State>,
    counts: &Counts,
) {
    let ((client_read, client_write), (server_read, server_write)) = (split(client), split(server));
    let asked = AtomicBool::new(false);
    tokio::select! {
        () = pass_requests(client_read, server_write, state, &asked, counts) => {}
        () = pass_answers(server_read, client_write, state, &asked) => {}
    }
}

async fn pass_requests(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    state: &watch::Receiver<State>,
    asked: &AtomicBool,
    counts: &Counts,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let behaviour = state.borrow().behaviour;
        if let Behaviour::Slow(delay) = behaviour {
            sleep(delay).await;
        }
        let loses = matches!(behaviour, Behaviour::AnswersLost | Behaviour::Mute);
        asked.store(asked.load(Ordering::Relaxed) || loses, Ordering::Relaxed);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        if behaviour != Behaviour::Through {
            counts.disturbed.fetch_add(1, Ordering::Relaxed);
        }
        if behaviour == Behaviour::AnswersLost {
            sleep(CARRIED_OUT).await;
            return;
        }
    }
}

/// Forwards answers. After the first lost answer no later one is forwarded: the client could not match it to a
/// request.
async fn pass_answers(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    state: &watch::Receiver<State>,
    asked: &AtomicBool,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if asked.load(Ordering::Relaxed) {
            if state.borrow().behaviour == Behaviour::Through {
                return;
            }
            continue;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
