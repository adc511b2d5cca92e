//! Takes the signals of plain workers, for settlement.

use std::time::Duration;

use parking_lot::Mutex;
use switchyard_redis::Connection;
use switchyard_store::StoreError;
use switchyard_store::plain::{OVERSIZED, SIGNAL_BYTES_MAX};
use tokio::sync::Mutex as AsyncMutex;

use crate::scripts;
use crate::store::RedisStore;

/// How many signals a process holds at a time.
const AT_ONCE: usize = 100;
/// The number of bytes after which one call takes no more signals.
const BATCH_BYTES: usize = SIGNAL_BYTES_MAX;
/// The length to which a signal that is too large is cut.
const EXCERPT_BYTES: usize = 1024;
/// After how long without taking signals a process loses the ones it has taken.
const SILENCE: Duration = Duration::from_secs(15);
/// How long to wait for a signal.
const IDLE: Duration = Duration::from_secs(1);

/// The state of a process that moves signals.
#[derive(Default)]
pub(crate) struct SignalMover {
    /// The mark that Redis keeps as long as no other process has taken over this process's signals.
    mark: Mutex<String>,
    /// The connection on which this process waits for the next signal.
    connection: AsyncMutex<Option<Connection>>,
}

impl SignalMover {
    pub(super) fn mark(&self) -> String {
        self.mark.lock().clone()
    }
}

impl RedisStore {
    pub(super) async fn move_signals(&self) -> Result<Vec<String>, StoreError> {
        let own = self.keys.processing(&self.name);
        let keys = [self.keys.signals(), self.keys.movers(), own];
        let args = [
            self.keys.processing(""),
            self.time(),
            self.name.clone(),
            SILENCE.as_millis().to_string(),
            AT_ONCE.to_string(),
            BATCH_BYTES.to_string(),
            SIGNAL_BYTES_MAX.to_string(),
            EXCERPT_BYTES.to_string(),
            OVERSIZED.to_owned(),
        ];
        // A signal may be any bytes. One that is not text is converted with replacements, and later found malformed.
        let (mark, signals): (String, Vec<Vec<u8>>) =
            self.client.run(&scripts::TAKE_SIGNALS, &keys, &args).await?;
        *self.signal_mover.mark.lock() = mark;
        let mut readable = Vec::with_capacity(signals.len());
        for signal in signals {
            readable.push(self.as_text(signal).await?);
        }
        Ok(readable)
    }

    /// The signal as text. If it is not text, replaces it in the list by its converted text, so that it can be removed
    /// later.
    async fn as_text(&self, signal: Vec<u8>) -> Result<String, StoreError> {
        match String::from_utf8(signal) {
            Ok(text) => Ok(text),
            Err(error) => {
                let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let own = self.keys.processing(&self.name);
                let mut exchange = redis::pipe();
                exchange.atomic();
                exchange.cmd("LREM").arg(&own).arg(1).arg(error.as_bytes()).ignore();
                exchange.cmd("RPUSH").arg(&own).arg(&shown).ignore();
                self.client.query_all::<()>(&exchange).await?;
                Ok(shown)
            }
        }
    }

    /// Waits for the next signal and moves it to this process's list, from which it is taken.
    pub(super) async fn wait_for_signals(&self) {
        let mut waiting = self.signal_mover.connection.lock().await;
        let connection = match waiting.take() {
            Some(connection) if self.client.binding().check().is_ok() => Ok(connection),
            _ => self.client.blocking().await,
        };
        let Ok(mut connection) = connection else {
            tokio::time::sleep(IDLE).await;
            return;
        };
        let own = self.keys.processing(&self.name);
        let mut wait = redis::cmd("BLMOVE");
        wait.arg(self.keys.signals()).arg(own).arg("LEFT").arg("RIGHT").arg(IDLE.as_secs());
        match wait.query_async::<redis::Value>(&mut connection).await {
            Ok(_) => *waiting = Some(connection),
            Err(_) => tokio::time::sleep(IDLE).await,
        }
    }

    pub(crate) async fn push_again(&self, signal: &str) -> Result<(), StoreError> {
        self.client.query::<u64>(redis::cmd("RPUSH").arg(self.keys.signals()).arg(signal)).await.map(drop)
    }
}
