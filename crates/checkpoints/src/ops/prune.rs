//! Removes old checkpoints of threads.

use crate::error::Error;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Keeps the newest checkpoint of each namespace, and the ancestors that it is rebuilt from.
    KeepLatest,
    /// Deletes the whole thread.
    Delete,
}

impl std::str::FromStr for Strategy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "keep_latest" => Ok(Self::KeepLatest),
            "delete" | "delete_all" => Ok(Self::Delete),
            other => {
                Err(Error::Invalid(format!("`{other}` is not a strategy (keep_latest, delete, delete_all)")))
            }
        }
    }
}

impl Checkpoints {
    /// Prunes threads, each atomically. Returns the number of checkpoints that `KeepLatest` removed.
    pub async fn prune(&self, threads: &[String], strategy: Strategy) -> Result<u64, Error> {
        let mut removed = 0;
        for thread in threads {
            if strategy == Strategy::Delete {
                self.delete_thread(thread).await?;
                continue;
            }
            let answer =
                self.send(thread, &scripts::call(&scripts::PRUNE, &self.space.thread(thread))).await?;
            removed += reply::integer(&answer).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        }
        Ok(removed)
    }
}
