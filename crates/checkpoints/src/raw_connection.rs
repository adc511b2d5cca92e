//! A plain connection to a single server, for a caller that does its own waiting: on its own thread, or in a foreign
//! event loop.
//!
//! It handles the ordinary case only. Anything else is a [`Failure`], and the caller uses [`crate::RetryingClient`],
//! which reconnects, repeats the call, or reports the error: every call may be sent twice.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::{Cmd, ConnectionAddr, ConnectionInfo, Value};
use switchyard_redis::{Address, Location};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::adaptive_wait::AdaptiveWait;
use crate::client::CONNECT_TIMEOUT;
use crate::resp::{Answer, Inbox};

/// A polling thread yields its processor first, and again after this many polls: the server may need the processor.
const POLLS_A_TURN: u32 = 16;

/// Why this connection has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The address does not allow such a connection: it is a cluster, has sentinels, or requires TLS.
    NotPlain,
    /// The connection is lost, or must not be used any more.
    Lost,
    /// The server refused the call; the connection is still good.
    Refused,
    /// The answer did not arrive in time.
    Late,
}

/// An answer that [`crate::Put`] and the other requests can decode.
#[derive(Debug)]
pub struct Reply(pub(crate) Value);

pub struct RawConnection {
    socket: Arc<Socket>,
    inbox: Inbox,
    adaptive_wait: Box<AdaptiveWait>,
    /// The current timeout of the socket, kept because setting it is a system call.
    read_timeout: Option<Duration>,
}

impl std::fmt::Debug for RawConnection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RawConnection({})", self.fd())
    }
}

/// Closes a connection that another task uses.
#[derive(Debug)]
pub struct Closer(Weak<Socket>);

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Closer {
    pub fn close(&self) {
        let closed = self.0.upgrade().map(|socket| match &*socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        });
        // An error means that it is already closed.
        let _ = closed;
    }

    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Socket {
    fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&*stream).read(room),
            Self::Unix(stream) => (&*stream).read(room),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&*stream).write(bytes),
            Self::Unix(stream) => (&*stream).write(bytes),
        }
    }

    /// Switches the socket between blocking and non-blocking.
    fn set_waiting(&self, waits: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(!waits),
            Self::Unix(stream) => stream.set_nonblocking(!waits),
        }
    }

    /// Sets the read and write timeouts of a blocking socket.
    fn set_patience(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
        }
    }
}

impl RawConnection {
    /// Whether this kind of connection can be used for the address.
    pub fn is_for(address: &Address) -> bool {
        plain(address).is_some()
    }

    pub async fn connect(address: &Address) -> Result<Self, Failure> {
        let info = plain(address).ok_or(Failure::NotPlain)?;
        tokio::time::timeout(CONNECT_TIMEOUT, greeted(info)).await.map_err(|_| Failure::Late)?
    }

    pub fn fd(&self) -> RawFd {
        match &*self.socket {
            Socket::Tcp(stream) => stream.as_raw_fd(),
            Socket::Unix(stream) => stream.as_raw_fd(),
        }
    }

    pub fn closer(&self) -> Closer {
        Closer(Arc::downgrade(&self.socket))
    }

    /// The waiting strategy, for a caller that watches the socket itself.
    pub fn adaptive_wait(&mut self) -> &mut AdaptiveWait {
        &mut self.adaptive_wait
    }

    /// Sends as many bytes as fit without blocking; returns how many.
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Failure> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.socket.write(&bytes[sent..]) {
                Ok(0) => return Err(Failure::Lost),
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Lost),
            }
        }
        Ok(sent)
    }

    /// The next answer, if it has arrived. [`Failure::Refused`] is an answer as well.
    pub fn receive(&mut self) -> Result<Option<Reply>, Failure> {
        if let Some(answer) = self.answer()? {
            return Ok(Some(answer));
        }
        match self.take_in() {
            Ok(()) => self.answer(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(_) => Err(Failure::Lost),
        }
    }

    /// Sends a request and waits for its answer, on this thread.
    pub fn exchange(&mut self, request: &[u8], timeout: Duration) -> Result<Reply, Failure> {
        // Called before sending: a server on the same processor may do all of its work while this thread is still
        // sending.
        let is_awake = self.adaptive_wait.begin();
        let sent = self.send(request)?;
        let awake = match is_awake && sent == request.len() {
            true => self.stay_awake(),
            false => Ok(None),
        };
        let answer = match awake {
            Ok(None) => self.sleep(&request[sent..], timeout),
            Ok(Some(answer)) => Ok(answer),
            Err(failure) => Err(failure),
        };
        self.adaptive_wait.end();
        answer
    }

    fn stay_awake(&mut self) -> Result<Option<Reply>, Failure> {
        for polls in 0_u32.. {
            if polls.is_multiple_of(POLLS_A_TURN) {
                std::thread::yield_now();
            }
            if let Some(answer) = self.receive()? {
                return Ok(Some(answer));
            }
            if self.adaptive_wait.is_over() {
                break;
            }
            std::hint::spin_loop();
        }
        Ok(None)
    }

    fn sleep(&mut self, unsent: &[u8], timeout: Duration) -> Result<Reply, Failure> {
        self.adaptive_wait.sleep();
        if self.read_timeout.replace(timeout) != Some(timeout) {
            self.socket.set_patience(timeout).map_err(|_| Failure::Lost)?;
        }
        self.socket.set_waiting(true).map_err(|_| Failure::Lost)?;
        let answer = self.wait(unsent);
        self.socket.set_waiting(false).map_err(|_| Failure::Lost)?;
        answer
    }

    fn wait(&mut self, unsent: &[u8]) -> Result<Reply, Failure> {
        if self.send(unsent)? < unsent.len() {
            return Err(Failure::Late);
        }
        loop {
            if let Some(answer) = self.answer()? {
                return Ok(answer);
            }
            self.take_in().map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::Late,
                _ => Failure::Lost,
            })?;
        }
    }

    fn take_in(&mut self) -> io::Result<()> {
        loop {
            match self.inbox.fill(|room| self.socket.read(room)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn answer(&mut self) -> Result<Option<Reply>, Failure> {
        match self.inbox.next() {
            Ok(None) => Ok(None),
            Ok(Some(Answer::Value(value))) => Ok(Some(Reply(value))),
            // These errors concern a script or a thread. Any other may concern the server: it became a replica, or
            // has no memory.
            Ok(Some(Answer::Refused(said)))
                if said.starts_with("NOSCRIPT") || said.starts_with("SWFORMAT") =>
            {
                Err(Failure::Refused)
            }
            Ok(Some(Answer::Refused(_))) | Err(_) => Err(Failure::Lost),
        }
    }
}

fn plain(address: &Address) -> Option<&ConnectionInfo> {
    match address.location() {
        Location::Server(info) => match info.addr() {
            ConnectionAddr::Tcp(..) | ConnectionAddr::Unix(_) => Some(info),
            _ => None,
        },
        _ => None,
    }
}

async fn greeted(info: &ConnectionInfo) -> Result<RawConnection, Failure> {
    let socket = match info.addr() {
        ConnectionAddr::Tcp(host, port) => {
            let stream = tokio::net::TcpStream::connect((host.as_str(), *port)).await;
            let mut stream = stream.map_err(|_| Failure::Lost)?;
            greet(&mut stream, info).await?;
            stream.set_nodelay(true).and_then(|()| stream.into_std()).map(Socket::Tcp)
        }
        ConnectionAddr::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await;
            let mut stream = stream.map_err(|_| Failure::Lost)?;
            greet(&mut stream, info).await?;
            stream.into_std().map(Socket::Unix)
        }
        _ => return Err(Failure::NotPlain),
    };
    let socket = Arc::new(socket.map_err(|_| Failure::Lost)?);
    Ok(RawConnection { socket, inbox: Inbox::default(), adaptive_wait: Box::default(), read_timeout: None })
}

/// Logs in, selects the database, and asks whether the server is a node of a cluster.
async fn greet<S>(stream: &mut S, info: &ConnectionInfo) -> Result<(), Failure>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let settings = info.redis_settings();
    let mut words: Vec<Cmd> = Vec::new();
    if let Some(password) = settings.password() {
        let mut auth = redis::cmd("AUTH");
        settings.username().iter().for_each(|name| {
            auth.arg(name);
        });
        auth.arg(password);
        words.push(auth);
    }
    if settings.db() != 0 {
        let mut select = redis::cmd("SELECT");
        select.arg(settings.db());
        words.push(select);
    }
    let required = words.len();
    let mut ask = redis::cmd("INFO");
    ask.arg("cluster");
    words.push(ask);
    let packed: Vec<u8> = words.iter().flat_map(Cmd::get_packed_command).collect();
    stream.write_all(&packed).await.map_err(|_| Failure::Lost)?;
    let mut inbox = Inbox::default();
    for number in 0..words.len() {
        match next_answer(stream, &mut inbox).await? {
            Answer::Refused(_) if number < required => return Err(Failure::Lost),
            Answer::Value(Value::BulkString(said))
                if said.windows(17).any(|part| part == b"cluster_enabled:1") =>
            {
                return Err(Failure::NotPlain);
            }
            // A user without permission for this command is assumed to be on a single server, as in
            // `switchyard-redis`.
            _ => {}
        }
    }
    Ok(())
}

async fn next_answer<S>(stream: &mut S, inbox: &mut Inbox) -> Result<Answer, Failure>
where
    S: tokio::io::AsyncRead + Unpin,
{
    loop {
        if let Some(answer) = inbox.next().map_err(|_| Failure::Lost)? {
            return Ok(answer);
        }
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.map_err(|_| Failure::Lost)?;
        if count == 0 {
            return Err(Failure::Lost);
        }
        let mut rest = &bytes[..count];
        while !rest.is_empty() {
            inbox.fill(|room| Read::read(&mut rest, room)).map_err(|_| Failure::Lost)?;
        }
    }
}
