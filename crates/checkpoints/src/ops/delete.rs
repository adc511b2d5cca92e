//! Deletes threads, and the checkpoints of runs.

use redis::Cmd;

use crate::error::Error;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;

impl Checkpoints {
    /// Deletes everything of a thread atomically. Returns whether there was anything.
    pub async fn delete_thread(&self, thread: &str) -> Result<bool, Error> {
        let mut cmd = Cmd::new();
        cmd.arg("UNLINK").arg(self.space.thread(thread).all());
        let answer = self.send(thread, &cmd).await?;
        Ok(reply::integer(&answer).is_some_and(|keys| keys > 0))
    }

    /// Deletes a thread that was not written to since this time of the server's clock. Returns whether it was
    /// deleted.
    pub async fn delete_idle_thread(&self, thread: &str, since_ms: i64) -> Result<bool, Error> {
        let mut call = scripts::call(&scripts::DELETE_IDLE, &self.space.thread(thread));
        call.arg(since_ms);
        Ok(reply::integer(&self.send(thread, &call).await?) == Some(1))
    }

    /// Deletes the checkpoints that any of these runs made, in all threads. Scans all threads; each is changed
    /// atomically. Returns the number of removed checkpoints.
    pub async fn delete_for_runs(&self, runs: &[String]) -> Result<u64, Error> {
        if runs.is_empty() {
            return Ok(0);
        }
        let mut removed = 0;
        for thread in self.thread_ids().await? {
            let mut call = scripts::call(&scripts::DELETE_RUNS, &self.space.thread(&thread));
            call.arg(runs);
            let answer = self.send(&thread, &call).await?;
            removed += reply::integer(&answer).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        }
        Ok(removed)
    }
}
