//! Deleting threads, and what runs made.

use redis::Cmd;

use crate::error::Error;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;

impl Checkpoints {
    /// Everything of a thread, at once. Whether there was anything.
    pub async fn delete_thread(&self, thread: &str) -> Result<bool, Error> {
        let mut cmd = Cmd::new();
        cmd.arg("UNLINK").arg(self.space.thread(thread).all());
        let answer = self.send(thread, &cmd).await?;
        Ok(reply::integer(&answer).is_some_and(|keys| keys > 0))
    }

    /// Deletes a thread that was not written to since this time of the server's clock. Whether it did.
    pub async fn delete_idle_thread(&self, thread: &str, since_ms: i64) -> Result<bool, Error> {
        let mut call = scripts::call(&scripts::DELETE_IDLE, &self.space.thread(thread));
        call.arg(since_ms);
        Ok(reply::integer(&self.send(thread, &call).await?) == Some(1))
    }

    /// The checkpoints that were made by any of these runs, in all threads. All threads are looked at; each is changed at
    /// once. How many checkpoints were removed.
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
