//! One connection that all callers share. The first call connects, and so does the first call after a discard.

use parking_lot::Mutex;
use redis::{RedisError, RedisResult};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::connector::Connector;

/// The shared connection to one address.
#[derive(Debug)]
pub struct SharedConnection {
    connector: Connector,
    current: Mutex<Current>,
    /// Locked while connecting, so that concurrent callers make one connection. Holds the failure of the last attempt.
    connecting: tokio::sync::Mutex<Option<(Instant, RedisError)>>,
}

#[derive(Debug, Default)]
struct Current {
    connection: Option<Connection>,
    /// The number of connections so far: a caller that found an older one broken does not discard a newer one.
    number: u64,
}

impl SharedConnection {
    /// A shared connection that connects at the first call.
    pub fn new(connector: Connector) -> Self {
        Self { connector, current: Mutex::default(), connecting: tokio::sync::Mutex::default() }
    }

    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// The connection and its number, counted from 1. Connects if there is none.
    pub async fn get(&self) -> RedisResult<(u64, Connection)> {
        if let Some(connected) = self.connected() {
            return Ok(connected);
        }
        let asked_at = Instant::now();
        let mut last_failure = self.connecting.lock().await;
        if let Some(connected) = self.connected() {
            return Ok(connected);
        }
        // Callers that waited for an attempt share its failure, instead of trying an absent server one after the other.
        if let Some((_, error)) = last_failure.as_ref().filter(|(at, _)| *at >= asked_at) {
            return Err(error.clone());
        }
        match self.connector.connect().await {
            Ok(connection) => {
                *last_failure = None;
                Ok(self.replace(connection))
            }
            Err(error) => {
                *last_failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Drops a broken connection, unless it has been replaced since.
    pub fn discard(&self, number: u64) {
        let mut current = self.current.lock();
        if current.number == number {
            current.connection = None;
        }
    }

    fn connected(&self) -> Option<(u64, Connection)> {
        let current = self.current.lock();
        Some((current.number, current.connection.clone()?))
    }

    fn replace(&self, connection: Connection) -> (u64, Connection) {
        let mut current = self.current.lock();
        current.number += 1;
        current.connection = Some(connection.clone());
        (current.number, connection)
    }
}
