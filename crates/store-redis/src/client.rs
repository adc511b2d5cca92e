//! What is asked of Redis, over the one connection that is shared, or one of its own for what waits.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, ToRedisArgs, Value};
use switchyard_observe::Metrics;
use switchyard_store::StoreError;

use crate::address;
use crate::binding::Binding;
use crate::connection::SharedConnection;
use crate::scripts::Script;

/// The oldest server that has every command the scripts use.
const VERSION_MIN: u32 = 7;

/// How often a server that still reads its data is asked whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Cheap to clone; clones share the connection.
#[derive(Clone)]
pub(crate) struct Client {
    link: Arc<SharedConnection>,
    binding: Arc<Binding>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("place", &self.link.location()).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects, and makes sure that the server is one that will do. Waits for one that still reads its data: that passes.
    pub(crate) async fn connect(url: &str, metrics: Arc<Metrics>) -> Result<Self, StoreError> {
        let (client, location) = address::client(url)?;
        let connected = Self {
            link: Arc::new(SharedConnection::new(client, location, metrics)),
            binding: Arc::default(),
        };
        connected.check_version().await?;
        while let Err(error) = connected.query::<()>(&redis::cmd("PING")).await {
            if !connected.link.is_loading() {
                return Err(error);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(connected)
    }

    async fn check_version(&self) -> Result<(), StoreError> {
        let info: String = self.query(redis::cmd("INFO").arg("server")).await?;
        // Valkey says which Redis it is compatible with on the same line.
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or("").trim();
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or(0);
        if major >= VERSION_MIN {
            return Ok(());
        }
        let location = self.link.location();
        Err(StoreError::unavailable(format!(
            "Redis at {location} is version {version}; 7.0 or newer is needed"
        )))
    }

    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let sent = self.send(command).await;
        let answer = if reads(command) { sent.map_err(StoreError::not_applied) } else { sent };
        let answer = answer?.unwrap_or(Value::Nil);
        redis::from_redis_value(answer).map_err(|error| self.unreadable(&error))
    }

    pub(crate) async fn query_all<T: FromRedisValue>(
        &self,
        commands: &redis::Pipeline,
    ) -> Result<T, StoreError> {
        let (number, mut connection) = self.connection().await?;
        match commands.query_async(&mut connection).await {
            Ok(answer) => {
                self.link.answered();
                Ok(answer)
            }
            Err(error) if commands.cmd_iter().all(reads) => Err(self.failed(number, &error).not_applied()),
            Err(error) => Err(self.failed(number, &error)),
        }
    }

    /// Runs a script by its hash, and sends its text if the server does not know it (any more).
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        args: &[impl ToRedisArgs],
    ) -> Result<T, StoreError> {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&script.hash).arg(keys.len()).arg(keys).arg(args);
        self.call(script, &call).await
    }

    /// The same for a call of it that has been put together already.
    pub(crate) async fn call<T: FromRedisValue>(&self, script: &Script, call: &Cmd) -> Result<T, StoreError> {
        loop {
            let sent = self.send(call).await;
            let answer = if script.changes { sent } else { sent.map_err(StoreError::not_applied) };
            if let Some(answer) = answer? {
                return redis::from_redis_value(answer).map_err(|error| self.unreadable(&error));
            }
            // The call itself was refused: nothing is unknown about it yet.
            let load = redis::cmd("SCRIPT").arg("LOAD").arg(&script.text).to_owned();
            self.query::<()>(&load).await.map_err(StoreError::not_applied)?;
        }
    }

    /// None if it is a script that the server does not know.
    async fn send(&self, command: &Cmd) -> Result<Option<Value>, StoreError> {
        let (number, mut connection) = self.connection().await?;
        match connection.req_packed_command(command).await.and_then(Value::extract_error) {
            Ok(answer) => {
                self.link.answered();
                Ok(Some(answer))
            }
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => Ok(None),
            Err(error) => Err(self.failed(number, &error)),
        }
    }

    /// The same Redis, whichever archive it belongs to.
    pub(crate) fn unbound(&self) -> Self {
        Self { link: self.link.clone(), binding: Arc::default() }
    }

    pub(crate) fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The server, for sentences.
    pub(crate) fn location(&self) -> &str {
        self.link.location()
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection), StoreError> {
        let (number, connection) = self.link.connection().await.map_err(|error| self.refused(&error))?;
        if !self.binding.was_asked(number)? {
            let asked = self.ask_whose(connection.clone()).await;
            asked.map_err(|error| self.failed(number, &error).not_applied())??;
            self.binding.asked(number);
        }
        Ok((number, connection))
    }

    /// A new connection may lead to another server, which belongs to another archive.
    async fn ask_whose(
        &self,
        mut connection: MultiplexedConnection,
    ) -> Result<Result<(), StoreError>, RedisError> {
        let Some(ask) = self.binding.question() else { return Ok(Ok(())) };
        let (id, location) = ask.query_async::<(Option<String>, Option<String>)>(&mut connection).await?;
        Ok(self.binding.compare(self.link.location(), id, location))
    }

    /// A connection of its own for a command that waits.
    pub(crate) async fn blocking(&self) -> Result<MultiplexedConnection, StoreError> {
        self.binding.check()?;
        let connection = self.link.another().await.map_err(|error| self.refused(&error))?;
        self.ask_whose(connection.clone()).await.map_err(|error| self.refused(&error))??;
        Ok(connection)
    }

    /// A connection of its own for what is published.
    pub(crate) async fn listen(&self) -> Result<PubSub, StoreError> {
        self.link.listening().await.map_err(|error| self.refused(&error))
    }

    /// There is no connection: nothing was sent.
    fn refused(&self, error: &RedisError) -> StoreError {
        self.link.failed(None, error).told(self.link.location(), error)
    }

    /// A call on this connection was refused, or its answer did not come.
    fn failed(&self, connection: u64, error: &RedisError) -> StoreError {
        let trouble = self.link.failed(Some(connection), error);
        match trouble.told(self.link.location(), error) {
            StoreError::Unavailable(why) if trouble.may_have_changed_something(error) => {
                StoreError::OutcomeUnknown(why)
            }
            told => told,
        }
    }

    fn unreadable(&self, error: &impl std::fmt::Display) -> StoreError {
        StoreError::Corrupt(format!(
            "Redis at {} answered something unexpected: {error}",
            self.link.location()
        ))
    }
}

/// Commands that change nothing.
const READS: [&str; 28] = [
    "EXISTS",
    "GET",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HKEYS",
    "HMGET",
    "HSCAN",
    "INFO",
    "PING",
    "PTTL",
    "SCAN",
    "SCARD",
    "SISMEMBER",
    "SMEMBERS",
    "SRANDMEMBER",
    "SSCAN",
    "TIME",
    "TYPE",
    "XINFO",
    "XLEN",
    "XPENDING",
    "XRANGE",
    "XREVRANGE",
    "ZCARD",
    "ZMSCORE",
    "ZRANGE",
    "ZRANGEBYSCORE",
];

fn reads(command: &Cmd) -> bool {
    let name = command.args_iter().next();
    matches!(name, Some(redis::Arg::Simple(name)) if READS.iter().any(|read| read.as_bytes() == name))
}
