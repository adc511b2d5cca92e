//! Calls to Redis: over the shared connection, or over a separate connection for a call that blocks.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, PubSub};
use redis::{Cmd, FromRedisValue, RedisError, ToRedisArgs, Value};
use switchyard_observe::Metrics;
use switchyard_redis::{
    Address, CallError, Connection, Connector, Location, RunScript, Script, SharedConnection, Timeouts,
};
use switchyard_store::StoreError;

use crate::binding::Binding;
use crate::health::Health;

/// The oldest server that has every command the scripts use.
const VERSION_MIN: u32 = 7;

const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(2), answer: Duration::from_secs(5) };

/// How often to ask a server that still loads its data whether it is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Calls to one Redis that belongs to one archive. Clones share the connection.
#[derive(Clone)]
pub(crate) struct Client {
    shared: Arc<SharedConnection>,
    health: Arc<Health>,
    binding: Arc<Binding>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("server", &self.location()).finish_non_exhaustive()
    }
}

/// The connector for the address of a hot store. Refuses clusters.
pub(crate) fn connector(url: &str) -> Result<Connector, StoreError> {
    let address = Address::parse(url).map_err(|error| {
        StoreError::unavailable(format!("the address of Redis cannot be understood: {error}"))
    })?;
    match address.location() {
        Location::Cluster(_) => Err(no_cluster(&address)),
        Location::Server(_) | Location::Sentinel(_) => {
            Ok(Connector::new(address, TIMEOUTS).for_single_servers())
        }
    }
}

fn no_cluster(address: &Address) -> StoreError {
    StoreError::unavailable(format!(
        "{address} is a Redis Cluster, which the hot store does not run on: name a single server (redis://, rediss:// or \
         redis+unix://) or the sentinels of one (redis+sentinel://)"
    ))
}

impl Client {
    /// Connects, and checks that the server is suitable. Waits while the server still loads its data.
    pub(crate) async fn connect(url: &str, metrics: Arc<Metrics>) -> Result<Self, StoreError> {
        let connector = connector(url)?;
        let health = Health::new(connector.address().server_name(), metrics);
        let connected = Self {
            shared: Arc::new(SharedConnection::new(connector)),
            health: Arc::new(health),
            binding: Arc::default(),
        };
        connected.check_server().await?;
        while let Err(error) = connected.query::<()>(&redis::cmd("PING")).await {
            if !connected.health.is_loading() {
                return Err(error);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(connected)
    }

    async fn check_server(&self) -> Result<(), StoreError> {
        let info: String = self.query(redis::cmd("INFO").arg("server")).await?;
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
        let server = self.location();
        // Valkey calls the field `server_mode`; one of the two is empty.
        match [field("redis_mode:"), field("server_mode:")].concat().as_str() {
            "cluster" => return Err(no_cluster(self.shared.connector().address())),
            "sentinel" => {
                return Err(StoreError::unavailable(format!(
                    "{server} is a sentinel and not a Redis: its address is redis+sentinel://{server}/<service>"
                )));
            }
            _ => {}
        }
        // On this line Valkey gives the version of the Redis that it is compatible with.
        let version = field("redis_version:");
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or(0);
        if major >= VERSION_MIN {
            return Ok(());
        }
        Err(StoreError::unavailable(format!(
            "Redis at {server} is version {version}; 7.0 or newer is needed"
        )))
    }

    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let (number, mut connection) = self.connection().await?;
        let answer = connection.req_packed_command(command).await.and_then(Value::extract_error);
        self.read(answer.map_err(|error| self.failed_call(number, &error, reads(command))))
    }

    pub(crate) async fn query_all<T: FromRedisValue>(
        &self,
        commands: &redis::Pipeline,
    ) -> Result<T, StoreError> {
        let (number, mut connection) = self.connection().await?;
        let answer = commands.query_async(&mut connection).await;
        if answer.is_ok() {
            self.health.answered();
        }
        answer.map_err(|error| self.failed_call(number, &error, commands.cmd_iter().all(reads)))
    }

    /// Runs a script by its hash.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        args: &[impl ToRedisArgs],
    ) -> Result<T, StoreError> {
        let mut call = redis::cmd("EVALSHA");
        call.arg(script.hash()).arg(keys.len()).arg(keys).arg(args);
        self.call(script, &call).await
    }

    /// Sends a call of a script that the caller has assembled.
    pub(crate) async fn call<T: FromRedisValue>(&self, script: &Script, call: &Cmd) -> Result<T, StoreError> {
        let (number, mut connection) = self.connection().await?;
        let answer = script.send(call, &mut connection).await.map_err(|error| match error {
            CallError::Load(error) => self.failed_call(number, &error, true),
            CallError::Call(error) => self.failed_call(number, &error, !script.writes()),
        });
        self.read(answer)
    }

    fn read<T: FromRedisValue>(&self, answer: Result<Value, StoreError>) -> Result<T, StoreError> {
        let answer = answer?;
        self.health.answered();
        redis::from_redis_value(answer).map_err(|error| self.unreadable(&error))
    }

    /// A client on the same connection that does not check which archive this Redis belongs to.
    pub(crate) fn unbound(&self) -> Self {
        Self { shared: self.shared.clone(), health: self.health.clone(), binding: Arc::default() }
    }

    pub(crate) fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The server's name, for messages.
    pub(crate) fn location(&self) -> &str {
        self.health.server()
    }

    async fn connection(&self) -> Result<(u64, Connection), StoreError> {
        let (number, connection) = self.shared.get().await.map_err(|error| self.refused(&error))?;
        self.health.connected(number);
        if !self.binding.was_asked(number)? {
            let asked = self.ask_whose(connection.clone()).await;
            asked.map_err(|error| self.failed_call(number, &error, true))??;
            self.binding.asked(number);
        }
        Ok((number, connection))
    }

    /// Asks which archive the server belongs to: a new connection may lead to another server.
    async fn ask_whose(&self, mut connection: Connection) -> Result<Result<(), StoreError>, RedisError> {
        let Some(ask) = self.binding.question() else { return Ok(Ok(())) };
        let (id, location) = ask.query_async::<(Option<String>, Option<String>)>(&mut connection).await?;
        Ok(self.binding.compare(self.location(), id, location))
    }

    /// Opens a separate connection for a command that blocks.
    pub(crate) async fn blocking(&self) -> Result<Connection, StoreError> {
        self.binding.check()?;
        let connection = self.shared.connector().connect().await.map_err(|error| self.refused(&error))?;
        self.ask_whose(connection.clone()).await.map_err(|error| self.refused(&error))??;
        Ok(connection)
    }

    /// Opens a separate connection for subscriptions.
    pub(crate) async fn subscribe(&self) -> Result<PubSub, StoreError> {
        self.shared.connector().subscribe().await.map_err(|error| self.refused(&error))
    }

    /// The error of a call for which there is no connection: nothing was sent.
    fn refused(&self, error: &RedisError) -> StoreError {
        self.health.explain(self.health.failed(error), error)
    }

    /// The error of a call that was refused, or whose answer did not arrive.
    fn failed_call(&self, number: u64, error: &RedisError, only_read: bool) -> StoreError {
        let failure = self.health.failed(error);
        if failure.ends_the_connection() {
            self.shared.discard(number);
        }
        match self.health.explain(failure, error) {
            StoreError::Unavailable(why) if !only_read && failure.may_have_changed_something(error) => {
                StoreError::OutcomeUnknown(why)
            }
            explained => explained,
        }
    }

    fn unreadable(&self, error: &impl std::fmt::Display) -> StoreError {
        StoreError::Corrupt(format!("Redis at {} answered something unexpected: {error}", self.location()))
    }
}

impl RunScript for Client {
    type Error = StoreError;

    async fn run_script<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        args: &[String],
    ) -> Result<T, StoreError> {
        self.run(script, keys, args).await
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
