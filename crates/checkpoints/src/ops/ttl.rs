//! Sets the lifetime of a thread.

use crate::error::Error;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The setting of the saver that writes to the thread.
    OfSaver {
        ttl_ms: u64,
    },
    /// The thread's own TTL, which overrides the setting of the savers.
    Own {
        ttl_ms: u64,
    },
    Forever,
}

impl Checkpoints {
    /// Sets the lifetime from now on, and again from each write on. Returns whether the thread exists.
    pub async fn set_ttl(&self, thread: &str, ttl: Ttl) -> Result<bool, Error> {
        let (saver_ms, own) = match ttl {
            Ttl::OfSaver { ttl_ms } => (ttl_ms, String::new()),
            Ttl::Own { ttl_ms } => (0, ttl_ms.max(1).to_string()),
            Ttl::Forever => (0, "0".to_owned()),
        };
        let mut call = scripts::call(&scripts::SET_TTL, &self.space.thread(thread));
        call.arg(saver_ms).arg(own);
        Ok(reply::integer(&self.send(thread, &call).await?) == Some(1))
    }
}
