//! Copying a thread.

use redis::Value;

use crate::error::Error;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;

impl Checkpoints {
    /// Copies everything of a thread, as of one moment, to another id. The copy keeps the TTL of the original.
    /// Returns whether there was something to copy.
    pub async fn copy_thread(&self, source: &str, target: &str) -> Result<bool, Error> {
        let dump = self.send(source, &scripts::call(&scripts::DUMP, &self.space.thread(source))).await?;
        if dump == Value::Nil {
            return Ok(false);
        }
        let parts = reply::list(dump).ok_or_else(|| Error::corrupt(source, "it cannot be copied"))?;
        let mut call = scripts::call(&scripts::RESTORE, &self.space.thread(target));
        call.arg(target);
        for part in parts {
            match part {
                Value::Int(ttl_ms) => call.arg(ttl_ms),
                part => call.arg(reply::bytes(part).unwrap_or_default()),
            };
        }
        match reply::integer(&self.send(target, &call).await?) {
            Some(1) => Ok(true),
            _ => Err(Error::Invalid(format!("thread `{target}` is there already; delete it first"))),
        }
    }
}
