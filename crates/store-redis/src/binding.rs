//! Which archive a Redis belongs to. Two archives behind one Redis would each be shipped half of the other's history, so a
//! process does nothing in a Redis that belongs to another archive, or to a later state of its own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use switchyard_core::Timestamp;
use switchyard_store::{ArchiveMark, Mismatch, StoreError};

use crate::scripts;
use crate::store::RedisStore;

/// The id while `switchyard redis rebuild` is at work.
pub(crate) const REBUILDING: &str = "rebuilding";

/// The archive that the Redis of a client has to belong to. Until one is set, any is accepted.
#[derive(Debug, Default)]
pub(crate) struct Binding {
    expected: OnceLock<Expected>,
    /// The number of the connection whose server was last asked.
    asked: AtomicU64,
    refused: AtomicBool,
    /// Why nothing is done, while nothing is.
    mismatch: Mutex<Option<Mismatch>>,
}

#[derive(Debug)]
struct Expected {
    key: String,
    mark: ArchiveMark,
}

impl Binding {
    pub(crate) fn expect(&self, key: String, mark: ArchiveMark) {
        // A store has one archive for as long as it lives.
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

    /// Whether the server behind this connection was asked, or need not be.
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

    /// A Redis that belongs to no archive was flushed or is new: it belongs to this one as soon as this one ships.
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
    /// Compares the archive with what Redis has seen of it. As long as they do not belong together, nothing is done in
    /// Redis.
    pub(crate) async fn compare_archive(&self) -> Result<(), StoreError> {
        let mut mark = self.archive.mark().await?;
        let mut answer = self.bind(&mark).await?;
        if let Answer::Behind { .. } = answer {
            // Another process may have looked at it after this one did.
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
