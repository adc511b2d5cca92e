//! The checkpoints of one namespace in one Redis.

use std::time::Duration;

use redis::{Cmd, Value};
use switchyard_redis::Address;

use crate::client::{LATE, RetryingClient};
use crate::error::Error;
use crate::keys::Keyspace;
use crate::reply;

/// Default time limit of an answer. Values may be large.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// A store of checkpoints, cheap to clone. Its operations are in [`crate::ops`].
#[derive(Clone, Debug)]
pub struct Checkpoints {
    pub(crate) client: RetryingClient,
    pub(crate) space: Keyspace,
}

impl Checkpoints {
    pub fn new(client: RetryingClient, space: Keyspace) -> Self {
        Self { client, space }
    }

    /// Opens a store without connecting.
    pub fn open(url: &str, namespace: &str) -> Result<Self, Error> {
        let client = RetryingClient::new(Address::parse(url)?, TIMEOUT_DEFAULT);
        Ok(Self::new(client, Keyspace::new(namespace)?))
    }

    pub fn address(&self) -> &Address {
        self.client.address()
    }

    /// The error for an answer that did not arrive in time.
    pub fn late(&self) -> Error {
        let address = self.address().to_string();
        Error::Unavailable { address, reason: LATE.to_owned() }
    }

    pub fn space(&self) -> &Keyspace {
        &self.space
    }

    /// Checks that Redis answers, and that its version is new enough.
    pub async fn check(&self) -> Result<(), Error> {
        let mut cmd = redis::cmd("INFO");
        cmd.arg("server");
        let (_, info) = match self.client.send_everywhere(&cmd).await {
            Ok(answers) => answers.into_iter().next().unwrap_or((None, Value::Nil)),
            // If the user may not call INFO, the first call shows whether the version is sufficient.
            Err(Error::Refused { reason, .. }) if reason.starts_with("NoPerm") => return Ok(()),
            Err(error) => return Err(error),
        };
        let info: String = redis::from_redis_value(info).unwrap_or_default();
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default();
        let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(u32::MAX);
        if major < 7 {
            let address = self.address().to_string();
            return Err(Error::Refused { address, reason: format!("it is Redis {version}; 7.0 is needed") });
        }
        Ok(())
    }

    /// The server's clock in milliseconds; in a cluster, the clock of one of the servers.
    pub async fn now_ms(&self) -> Result<i64, Error> {
        let answers = self.client.send_everywhere(&redis::cmd("TIME")).await?;
        let time = answers.into_iter().next().and_then(|(_, time)| reply::list(time)).unwrap_or_default();
        let numbers: Vec<i64> = time.iter().filter_map(reply::integer).collect();
        Ok(numbers.first().unwrap_or(&0) * 1_000 + numbers.get(1).unwrap_or(&0) / 1_000)
    }

    /// Sends a call about a thread; an error names the thread.
    pub(crate) async fn send(&self, thread: &str, cmd: &Cmd) -> Result<Value, Error> {
        self.client.send(cmd).await.map_err(|error| name_thread(error, thread))
    }

    pub(crate) async fn send_all(&self, thread: &str, cmds: &[Cmd]) -> Result<Vec<Value>, Error> {
        self.client.send_all(cmds).await.map_err(|error| name_thread(error, thread))
    }
}

fn name_thread(error: Error, thread: &str) -> Error {
    match error {
        Error::Format { found, .. } => Error::Format { thread: thread.to_owned(), found },
        other => other,
    }
}
