//! The way to Redis: connected at the first call, and again when the connection is lost.
//!
//! Everything that is sent through here may be repeated: storing the same again changes nothing. So a call whose
//! connection was lost is sent again, a few times.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, Pipeline, RedisError, RedisResult,
    ServerErrorKind, Value,
};

use crate::address::{Address, Place};
use crate::error::Error;
use crate::scripts::Script;

/// How long it takes to give up: a call has this many attempts, with pauses between them.
const PAUSES_MS: [u64; 3] = [20, 100, 400];

pub(crate) const LATE: &str = "no answer in time";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Cheap to clone; clones share a connection.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    timeout: Duration,
    route: Mutex<Option<Route>>,
    /// Held while connecting, so that many callers make one connection.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
enum Route {
    Server(MultiplexedConnection, Arc<()>),
    Cluster(ClusterConnection, Arc<()>),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Connection({})", self.shared.address)
    }
}

impl Connection {
    /// `timeout` is how long an answer may take.
    pub fn new(address: Address, timeout: Duration) -> Self {
        // The first user of TLS in this process chooses; a second choice is not an error.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let shared =
            Shared { address, timeout, route: Mutex::default(), connecting: tokio::sync::Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// Sends a command. A script that the server does not know is sent whole.
    pub(crate) async fn send(&self, cmd: &Cmd) -> Result<Value, Error> {
        let answer = match self.repeat(Request::One(cmd)).await {
            Err(error) if is_noscript(&error) => {
                let whole = Script::with_text(cmd).ok_or_else(|| self.explain(error))?;
                self.repeat(Request::One(&whole)).await
            }
            answer => answer,
        };
        Ok(answer.map_err(|error| self.explain(error))?.one())
    }

    /// Sends commands on one thread's keys without waiting in between.
    pub(crate) async fn send_all(&self, cmds: &[Cmd]) -> Result<Vec<Value>, Error> {
        let mut pipeline = Pipeline::with_capacity(cmds.len());
        cmds.iter().for_each(|cmd| {
            pipeline.add_command(cmd.clone());
        });
        match self.repeat(Request::All(&pipeline, cmds.len())).await {
            Ok(answer) => Ok(answer.0.into_iter().map(|(_, value)| value).collect()),
            // One by one, because any of them may be what is not known.
            Err(error) if is_noscript(&error) => {
                let mut values = Vec::with_capacity(cmds.len());
                for cmd in cmds {
                    values.push(self.send(cmd).await?);
                }
                Ok(values)
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Sends a command to every server that holds keys; the answers, with the server's name.
    pub(crate) async fn send_everywhere(&self, cmd: &Cmd) -> Result<Vec<(Node, Value)>, Error> {
        Ok(self.repeat(Request::Everywhere(cmd)).await.map_err(|error| self.explain(error))?.0)
    }

    pub(crate) async fn send_to(&self, node: &Node, cmd: &Cmd) -> Result<Value, Error> {
        Ok(self.repeat(Request::To(node, cmd)).await.map_err(|error| self.explain(error))?.one())
    }

    async fn repeat(&self, request: Request<'_>) -> RedisResult<Answer> {
        for pause_ms in PAUSES_MS {
            match self.attempt(request).await {
                Err(error) if is_passing(&error) => tokio::time::sleep(Duration::from_millis(pause_ms)).await,
                answer => return answer,
            }
        }
        self.attempt(request).await
    }

    async fn attempt(&self, request: Request<'_>) -> RedisResult<Answer> {
        let route = self.route().await?;
        let mark = route.mark();
        let answer = route.carry(request).await;
        if answer.as_ref().is_err_and(is_lost) {
            self.forget(&mark);
        }
        answer
    }

    async fn route(&self) -> RedisResult<Route> {
        let connected = self.shared.route.lock().clone();
        if let Some(route) = connected {
            return Ok(route);
        }
        let _connecting = self.shared.connecting.lock().await;
        let connected = self.shared.route.lock().clone();
        if let Some(route) = connected {
            return Ok(route);
        }
        let route = self.connect().await?;
        *self.shared.route.lock() = Some(route.clone());
        Ok(route)
    }

    /// Drops a connection, unless another caller has made a new one meanwhile.
    fn forget(&self, mark: &Arc<()>) {
        let mut current = self.shared.route.lock();
        if current.as_ref().is_some_and(|route| Arc::ptr_eq(&route.mark(), mark)) {
            *current = None;
        }
    }

    async fn connect(&self) -> RedisResult<Route> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(self.shared.timeout));
        match &self.shared.address.place {
            Place::Server(info) => self.connect_server(info, &config).await,
            Place::Cluster(nodes) => self.connect_cluster(nodes.clone()).await,
            Place::Sentinel(sentinel) => {
                let mut client = sentinel.client(self.shared.address.certificates.as_ref())?;
                let connection = client.get_async_connection_with_config(&config).await?;
                Ok(Route::Server(connection, Arc::default()))
            }
        }
    }

    async fn connect_server(
        &self,
        info: &ConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> RedisResult<Route> {
        let client = match self.shared.address.certificates.clone() {
            Some(certificates) => Client::build_with_tls(info.clone(), certificates)?,
            None => Client::open(info.clone())?,
        };
        let mut connection = client.get_multiplexed_async_connection_with_config(config).await?;
        if is_cluster(&mut connection).await {
            return self.connect_cluster(vec![info.clone()]).await;
        }
        Ok(Route::Server(connection, Arc::default()))
    }

    async fn connect_cluster(&self, nodes: Vec<ConnectionInfo>) -> RedisResult<Route> {
        let mut builder: ClusterClientBuilder = ClusterClient::builder(nodes)
            .connection_timeout(CONNECT_TIMEOUT)
            .response_timeout(self.shared.timeout)
            .overall_response_timeout(Some(self.shared.timeout));
        if let Some(certificates) = self.shared.address.certificates.clone() {
            builder = builder.certs(certificates);
        }
        let connection = builder.build()?.get_async_connection().await?;
        Ok(Route::Cluster(connection, Arc::default()))
    }

    fn explain(&self, error: RedisError) -> Error {
        let address = self.shared.address.to_string();
        if error.code() == Some("SWFORMAT") {
            let found = error.detail().unwrap_or("?").to_owned();
            return Error::Format { thread: String::new(), found };
        }
        let is_server = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
            || error.kind() == ErrorKind::AuthenticationFailed;
        if is_server && !is_passing(&error) {
            return Error::Refused { address, reason: error.to_string() };
        }
        let reason = if error.is_timeout() { LATE.to_owned() } else { error.to_string() };
        Error::Unavailable { address, reason }
    }
}

/// A server that holds keys. `None` is the only one, or the one that holds the command's keys.
pub(crate) type Node = Option<(String, u16)>;

#[derive(Clone, Copy)]
enum Request<'a> {
    One(&'a Cmd),
    All(&'a Pipeline, usize),
    Everywhere(&'a Cmd),
    To(&'a Node, &'a Cmd),
}

struct Answer(Vec<(Node, Value)>);

impl Route {
    fn mark(&self) -> Arc<()> {
        match self {
            Self::Server(_, mark) | Self::Cluster(_, mark) => mark.clone(),
        }
    }

    async fn carry(self, request: Request<'_>) -> RedisResult<Answer> {
        match (self, request) {
            (Self::Server(mut connection, _), Request::All(pipeline, count)) => {
                Answer::all(connection.req_packed_commands(pipeline, 0, count).await?)
            }
            (Self::Cluster(mut connection, _), Request::All(pipeline, count)) => {
                Answer::all(connection.req_packed_commands(pipeline, 0, count).await?)
            }
            (Self::Cluster(mut connection, _), Request::To(Some((host, port)), cmd)) => {
                let there = SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port };
                let value = connection.route_command(cmd.clone(), RoutingInfo::SingleNode(there)).await?;
                Answer::all(vec![value])
            }
            (Self::Cluster(mut connection, _), Request::Everywhere(cmd)) => {
                let to_all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                Answer::of_nodes(connection.route_command(cmd.clone(), to_all).await?)
            }
            (
                Self::Server(mut connection, _),
                Request::One(cmd) | Request::To(_, cmd) | Request::Everywhere(cmd),
            ) => Answer::all(vec![connection.req_packed_command(cmd).await?]),
            (Self::Cluster(mut connection, _), Request::One(cmd) | Request::To(None, cmd)) => {
                Answer::all(vec![connection.req_packed_command(cmd).await?])
            }
        }
    }
}

impl Answer {
    fn all(values: Vec<Value>) -> RedisResult<Self> {
        values
            .into_iter()
            .map(|value| Ok((None, value.extract_error()?)))
            .collect::<RedisResult<_>>()
            .map(Self)
    }

    fn of_nodes(value: Value) -> RedisResult<Self> {
        let Value::Map(answers) = value else {
            return Err(RedisError::from((ErrorKind::UnexpectedReturnType, "no answer for each node")));
        };
        let named = |(name, value): (Value, Value)| Ok((Some(node_named(name)?), value.extract_error()?));
        answers.into_iter().map(named).collect::<RedisResult<_>>().map(Self)
    }

    fn one(self) -> Value {
        self.0.into_iter().next().map_or(Value::Nil, |(_, value)| value)
    }
}

fn node_named(name: Value) -> RedisResult<(String, u16)> {
    let name: String = redis::from_redis_value(name)?;
    let (host, port) = name.rsplit_once(':').unwrap_or((&name, ""));
    let port = port.parse().map_err(|_| RedisError::from((ErrorKind::Client, "a node without a port")))?;
    Ok((host.to_owned(), port))
}

/// Who may not ask is taken to be on a single server, which says `MOVED` if it is not.
async fn is_cluster(connection: &mut MultiplexedConnection) -> bool {
    let answer: RedisResult<String> = redis::cmd("INFO").arg("cluster").query_async(connection).await;
    answer.is_ok_and(|info| info.contains("cluster_enabled:1"))
}

fn is_noscript(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// The connection is of no use any more.
fn is_lost(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_connection_dropped()
        || error.is_timeout()
        || matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::Moved))
}

/// Another attempt may succeed. An answer that did not come in time was waited for long enough.
fn is_passing(error: &RedisError) -> bool {
    let is_server = matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ReadOnly
                | ServerErrorKind::Moved
        )
    );
    let is_nobody_there =
        error.is_connection_refusal() || error.is_connection_dropped() || error.is_io_error();
    is_server
        || (is_nobody_there && !error.is_timeout())
        || error.kind() == ErrorKind::ClusterConnectionNotFound
}
