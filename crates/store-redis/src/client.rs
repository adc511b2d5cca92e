//! The connection: one multiplexed for everything that answers at once, and one for what is published.

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig, PubSub};
use redis::{Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo, ServerErrorKind, ToRedisArgs};
use switchyard_store::StoreError;

use crate::scripts::Script;

/// How long a connection may take, and how long an answer.
const CONNECT: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(5);

/// The oldest server that has every command the scripts use.
const VERSION_MIN: u32 = 7;

#[derive(Clone)]
pub(crate) struct Client {
    client: redis::Client,
    manager: ConnectionManager,
    /// Host and port, or the socket: what errors name. Never the password.
    place: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects, and makes sure that the server is one that will do.
    pub(crate) async fn connect(url: &str) -> Result<Self, StoreError> {
        // Whoever is first chooses; all of ours choose the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let info = url.into_connection_info().map_err(|error| {
            StoreError::unavailable(format!("the address of Redis cannot be understood: {}", about(&error)))
        })?;
        let place = info.addr().to_string();
        let unavailable = |error: redis::RedisError| refused(&place, &error);
        let client = redis::Client::open(info).map_err(unavailable)?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER))
            .set_number_of_retries(1)
            .set_max_delay(Duration::from_millis(100));
        let manager =
            ConnectionManager::new_with_config(client.clone(), config).await.map_err(unavailable)?;
        let connected = Self { client, manager, place };
        connected.check_version().await?;
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
        let place = &self.place;
        Err(StoreError::unavailable(format!("Redis at {place} is version {version}; 7.0 or newer is needed")))
    }

    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        command.query_async(&mut self.manager.clone()).await.map_err(|error| refused(&self.place, &error))
    }

    pub(crate) async fn query_all<T: FromRedisValue>(
        &self,
        commands: &redis::Pipeline,
    ) -> Result<T, StoreError> {
        commands.query_async(&mut self.manager.clone()).await.map_err(|error| refused(&self.place, &error))
    }

    /// A connection of its own for a command that waits.
    pub(crate) async fn blocking(&self) -> Result<redis::aio::MultiplexedConnection, StoreError> {
        let config = redis::AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT));
        let config = config.set_response_timeout(Some(ANSWER));
        let connected = self.client.get_multiplexed_async_connection_with_config(&config).await;
        connected.map_err(|error| refused(&self.place, &error))
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
        let mut connection = self.manager.clone();
        loop {
            match call.query_async(&mut connection).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    self.query::<()>(redis::cmd("SCRIPT").arg("LOAD").arg(&script.text)).await?;
                }
                Err(error) => return Err(refused(&self.place, &error)),
            }
        }
    }

    /// A connection of its own for what is published.
    pub(crate) async fn listen(&self) -> Result<PubSub, StoreError> {
        let connecting = tokio::time::timeout(CONNECT, self.client.get_async_pubsub()).await;
        let connected = connecting.map_err(|_| {
            StoreError::unavailable(format!("Redis at {} does not answer: timed out", self.place))
        })?;
        connected.map_err(|error| refused(&self.place, &error))
    }
}

/// What a caller is told. All of it can pass: a server that is down, full, loading, or a replica for now.
fn refused(place: &str, error: &redis::RedisError) -> StoreError {
    let unreachable = error.is_io_error() || error.is_timeout() || error.is_connection_dropped();
    let what = if unreachable { "does not answer" } else { "refused" };
    StoreError::unavailable(format!("Redis at {place} {what}: {}", about(error)))
}

fn about(error: &redis::RedisError) -> String {
    error.detail().map_or_else(|| error.to_string(), str::to_owned)
}
