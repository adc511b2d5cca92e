//! Binds a Redis to one archive. If two archives shared a Redis, each would get half of the other's history. So a
//! process does nothing in a Redis that belongs to another archive, or to a later state of its own archive.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use switchyard_core::Timestamp;
use switchyard_store::{ArchiveMark, Mismatch, StoreError};

use crate::scripts;
use crate::store::RedisStore;

/// The archive id that Redis has while `switchyard redis rebuild` runs.
pub(crate) const REBUILDING: &str = "rebuilding";

/// The archive that the Redis of a client must belong to. Until one is set, any is accepted.
#[derive(Debug, Default)]
pub(crate) struct Binding {
    expected: OnceLock<Expected>,
    /// The number of the connection whose server was last asked for its archive.
    asked: AtomicU64,
    refused: AtomicBool,
    /// The mismatch because of which calls are refused, if there is one.
    mismatch: Mutex<Option<Mismatch>>,
}

#[derive(Debug)]
struct Expected {
    key: String,
    mark: ArchiveMark,
}

impl Binding {
    pub(crate) fn expect(&self, key: String, mark: ArchiveMark) {
        // A store has the same archive as long as it lives.
        let _ = self.expected.set(Expected { key, mark });
    }

    pub(crate) fn refuse(&self, mismatch: Mismatch) -> StoreError {
        *self.mismatch.lock() = Some(mismatch.clone());
        self.refused.store(true, Ordering::Release);
        mismatch.into()
    }

    pub(crate) fn admit(&self) {
        if self.refused.swap(false, Ordering::AcqRel) && self.mismatch.lock().take().is_some() {
            tracing::info!("Redis and the archive belong together again");
        }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.refused.load(Ordering::Acquire)
            && let Some(mismatch) = self.mismatch.lock().clone()
        {
            return Err(mismatch.into());
        }
        Ok(())
    }

    /// Whether this process has asked the server of this connection for its archive, or need not ask.
    pub(crate) fn was_asked(&self, number: u64) -> Result<bool, StoreError> {
        self.check()?;
        Ok(self.asked.load(Ordering::Relaxed) == number || self.expected.get().is_none())
    }

    pub(crate) fn asked(&self, number: u64) {
        self.asked.store(number, Ordering::Relaxed);
    }

    pub(crate) fn question(&self) -> Option<redis::Cmd> {
        let expected = self.expected.get()?;
        Some(redis::cmd("HMGET").arg(&expected.key).arg("id").arg("place").to_owned())
    }

    /// Compares the archive of a Redis with the expected one. A Redis without an archive is new or was flushed: it
    /// becomes this archive's as soon as this process ships.
    pub(crate) fn compare(
        &self,
        server: &str,
        id: Option<String>,
        location: Option<String>,
    ) -> Result<(), StoreError> {
        match (self.expected.get(), id) {
            (Some(expected), Some(id)) if *id != *expected.mark.id => {
                Err(other(server, &id, &location.unwrap_or_default(), expected.mark.clone()).into())
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn other(server: &str, id: &str, location: &str, ours: ArchiveMark) -> Mismatch {
    let hot = format!("Redis at {server}").into();
    match id {
        REBUILDING => Mismatch::Rebuilding { hot },
        _ => Mismatch::OtherArchive { hot, id: id.into(), location: location.into(), ours },
    }
}

/// The answer of `archive_bind.lua`.
enum Answer {
    Ours,
    Other { id: String, location: String },
    Behind { known: i64 },
}

impl RedisStore {
    /// Compares the archive with the identity and position that Redis has stored. Until they match, calls to Redis are
    /// refused.
    pub(crate) async fn compare_archive(&self) -> Result<(), StoreError> {
        let mut mark = self.archive.mark().await?;
        let mut answer = self.bind(&mark).await?;
        if let Answer::Behind { .. } = answer {
            // Another process may have stored a later position since this one read the archive's.
            mark = self.archive.mark().await?;
            answer = self.bind(&mark).await?;
        }
        let server = self.client.location();
        let mismatch = match answer {
            Answer::Ours => {
                self.client.binding().admit();
                self.observe.metrics().archive_is_bound(true);
                return Ok(());
            }
            Answer::Other { id, location } => other(server, &id, &location, mark),
            Answer::Behind { known } => Mismatch::WentBack {
                hot: format!("Redis at {server}").into(),
                known: Timestamp::from_millis(known),
                ours: mark,
            },
        };
        Err(self.refuse(mismatch))
    }

    pub(crate) fn refuse(&self, mismatch: Mismatch) -> StoreError {
        self.observe.metrics().archive_is_bound(false);
        self.client.binding().refuse(mismatch)
    }

    async fn bind(&self, mark: &ArchiveMark) -> Result<Answer, StoreError> {
        let args = [mark.id.to_string(), mark.location.to_string(), mark.position.as_millis().to_string()];
        let answer: Vec<String> =
            self.unbound.run(&scripts::ARCHIVE_BIND, &[self.keys.archive()], &args).await?;
        match &answer[..] {
            [ours] if ours == "ours" => Ok(Answer::Ours),
            [other, id, location] if other == "other" => {
                Ok(Answer::Other { id: id.clone(), location: location.clone() })
            }
            [behind, known] if behind == "behind" && known.parse::<i64>().is_ok() => {
                Ok(Answer::Behind { known: known.parse().unwrap_or(i64::MAX) })
            }
            _ => Err(StoreError::Corrupt(format!("Redis answered {answer:?} when asked for its archive"))),
        }
    }
}
