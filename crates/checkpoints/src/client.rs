//! Calls to Redis, repeated after transient errors.
//!
//! Every call of this crate may be repeated: storing the same data again changes nothing. So a call whose connection
//! was lost is sent again, a few times.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, Value};
use switchyard_redis::{Address, Connection, Connector, RedisFailure, SharedConnection, Timeouts};

use crate::error::Error;
use crate::scripts;

/// The pauses between the attempts of a call.
const PAUSES_MS: [u64; 3] = [20, 100, 400];

pub(crate) const LATE: &str = "no answer in time";

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends calls and repeats them after transient errors. Clones share a connection.
#[derive(Clone)]
pub struct RetryingClient {
    shared: Arc<SharedConnection>,
}

impl std::fmt::Debug for RetryingClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RetryingClient({})", self.address())
    }
}

impl RetryingClient {
    /// Creates a client without connecting. `timeout` limits the time for an answer.
    pub fn new(address: Address, timeout: Duration) -> Self {
        let connector = Connector::new(address, Timeouts { connect: CONNECT_TIMEOUT, answer: timeout });
        Self { shared: Arc::new(SharedConnection::new(connector)) }
    }

    pub fn address(&self) -> &Address {
        self.shared.connector().address()
    }

    /// Sends a command or a script call.
    pub(crate) async fn send(&self, cmd: &Cmd) -> Result<Value, Error> {
        Ok(self.repeat(Request::One(cmd)).await?.one())
    }

    /// Sends commands on one thread's keys in a pipeline.
    pub(crate) async fn send_all(&self, cmds: &[Cmd]) -> Result<Vec<Value>, Error> {
        let mut pipeline = Pipeline::with_capacity(cmds.len());
        cmds.iter().for_each(|cmd| {
            pipeline.add_command(cmd.clone());
        });
        let answers = self.repeat(Request::All(&pipeline, cmds)).await?;
        Ok(answers.0.into_iter().map(|(_, value)| value).collect())
    }

    /// Sends a command to every server that holds keys; returns the answers, each with its server.
    pub(crate) async fn send_everywhere(&self, cmd: &Cmd) -> Result<Vec<(Node, Value)>, Error> {
        Ok(self.repeat(Request::Everywhere(cmd)).await?.0)
    }

    pub(crate) async fn send_to(&self, node: &Node, cmd: &Cmd) -> Result<Value, Error> {
        Ok(self.repeat(Request::To(node, cmd)).await?.one())
    }

    async fn repeat(&self, request: Request<'_>) -> Result<Answers, Error> {
        for pause_ms in PAUSES_MS {
            match self.attempt(request).await {
                Err(error) if may_pass_soon(&error) => {
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                }
                answer => return answer.map_err(|error| self.explain(&error)),
            }
        }
        self.attempt(request).await.map_err(|error| self.explain(&error))
    }

    async fn attempt(&self, request: Request<'_>) -> RedisResult<Answers> {
        let (number, connection) = self.shared.get().await?;
        let answers = request.send(connection).await;
        if answers.as_ref().is_err_and(ends_the_connection) {
            self.shared.discard(number);
        }
        answers
    }

    fn explain(&self, error: &RedisError) -> Error {
        let address = self.address().to_string();
        if error.code() == Some("SWFORMAT") {
            let found = error.detail().unwrap_or("?").to_owned();
            return Error::Format { thread: String::new(), found };
        }
        let is_answer = matches!(
            error.kind(),
            ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::AuthenticationFailed
        );
        if is_answer && !may_pass_soon(error) {
            return Error::Refused { address, reason: error.to_string() };
        }
        let reason = if error.is_timeout() { LATE.to_owned() } else { error.to_string() };
        Error::Unavailable { address, reason }
    }
}

fn may_pass_soon(error: &RedisError) -> bool {
    RedisFailure::of(error).may_pass_soon(error)
}

fn ends_the_connection(error: &RedisError) -> bool {
    RedisFailure::of(error).ends_the_connection() || error.is_unrecoverable_error()
}

/// A server that holds keys. `None` is the only server, or the one that holds the command's keys.
pub(crate) type Node = Option<(String, u16)>;

#[derive(Clone, Copy)]
enum Request<'a> {
    One(&'a Cmd),
    All(&'a Pipeline, &'a [Cmd]),
    Everywhere(&'a Cmd),
    To(&'a Node, &'a Cmd),
}

impl Request<'_> {
    async fn send(self, connection: Connection) -> RedisResult<Answers> {
        match (connection, self) {
            (mut connection, Self::All(pipeline, cmds)) => {
                send_pipeline(pipeline, cmds, &mut connection).await
            }
            (Connection::Cluster(connection), Self::To(Some((host, port)), cmd)) => {
                let node = SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port };
                route(cmd, RoutingInfo::SingleNode(node), connection).await.map(Answers::of_one)
            }
            (Connection::Cluster(connection), Self::Everywhere(cmd)) => {
                let masters = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                Answers::of_nodes(route(cmd, masters, connection).await?)
            }
            (mut connection, Self::One(cmd) | Self::To(_, cmd) | Self::Everywhere(cmd)) => {
                send_one(cmd, &mut connection).await.map(Answers::of_one)
            }
        }
    }
}

async fn send_one(cmd: &Cmd, connection: &mut Connection) -> RedisResult<Value> {
    match scripts::called_by(cmd) {
        Some(script) => Ok(script.send(cmd, connection).await?),
        None => connection.req_packed_command(cmd).await.and_then(Value::extract_error),
    }
}

async fn send_pipeline(
    pipeline: &Pipeline,
    cmds: &[Cmd],
    connection: &mut Connection,
) -> RedisResult<Answers> {
    let answers = connection.req_packed_commands(pipeline, 0, cmds.len()).await.and_then(Answers::of_all);
    match answers {
        // One by one, because any of them may call the script that the server does not have.
        Err(error) if switchyard_redis::is_unknown_script(&error) => {
            let mut values = Vec::with_capacity(cmds.len());
            for cmd in cmds {
                values.push(send_one(cmd, connection).await?);
            }
            Answers::of_all(values)
        }
        answers => answers,
    }
}

async fn route(cmd: &Cmd, to: RoutingInfo, mut connection: ClusterConnection) -> RedisResult<Value> {
    connection.route_command(cmd.clone(), to).await.and_then(Value::extract_error)
}

/// An answer for each command, or for each server.
struct Answers(Vec<(Node, Value)>);

impl Answers {
    fn of_one(value: Value) -> Self {
        Self(vec![(None, value)])
    }

    fn of_all(values: Vec<Value>) -> RedisResult<Self> {
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
