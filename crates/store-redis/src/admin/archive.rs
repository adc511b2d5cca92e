//! Reads and checks which archive a Redis belongs to.

use switchyard_core::Timestamp;
use switchyard_store::{ArchiveMark, Check, Mismatch, StoreError};

use super::RedisAdmin;
use crate::binding;

/// The archive that a Redis belongs to, as Redis stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub id: String,
    pub location: String,
    pub position: Timestamp,
}

impl RedisAdmin {
    /// The archive that this Redis belongs to; `None` if it belongs to none yet.
    pub async fn bound(&self) -> Result<Option<Bound>, StoreError> {
        let mut ask = redis::cmd("HMGET");
        ask.arg(self.keys.archive()).arg("id").arg("place").arg("position");
        let (id, location, position): (Option<String>, Option<String>, Option<i64>) =
            self.client.query(&ask).await?;
        Ok(id.map(|id| Bound {
            id,
            location: location.unwrap_or_default(),
            position: Timestamp::from_millis(position.unwrap_or(0)),
        }))
    }

    /// Checks whether an archive is the one that this Redis belongs to.
    pub async fn examine_archive(&self, mark: &ArchiveMark) -> Check {
        const NAME: &str = "redis archive";
        let bound = match self.bound().await {
            Ok(Some(bound)) => bound,
            Ok(None) => return Check::ok(NAME, "none yet; the first process that starts makes it this one"),
            Err(error) => return Check::failed(NAME, error, "the account needs HMGET"),
        };
        let server = self.client.location();
        if *bound.id != *mark.id {
            let mismatch = binding::other(server, &bound.id, &bound.location, mark.clone());
            let advice = "another redis.prefix, another Redis, or `switchyard redis rebuild`";
            return Check::failed(NAME, mismatch, advice);
        }
        if bound.position > mark.position {
            let hot = format!("Redis at {server}").into();
            let mismatch = Mismatch::WentBack { hot, known: bound.position, ours: mark.clone() };
            let advice = "a newer backup, or `switchyard redis rebuild` to go on from this one";
            return Check::failed(NAME, mismatch, advice);
        }
        Check::ok(NAME, format!("{} at {}", mark.id, mark.location))
    }
}
