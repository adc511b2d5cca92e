//! API keys: made, checked, revoked.
//!
//! A key is `swk_<id>_<secret>`. The id finds it; the secret is 256 random bits, of which only the SHA-256 is kept. A
//! slow hash, as for passwords, would add nothing: it makes guessing expensive, and nobody guesses 256 bits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_core::Hash;
use switchyard_store::{ApiKeyRecord, Archive, Clock, StoreError};
use tokio::time::Instant;

const PREFIX: &str = "swk_";

/// What is remembered of a key is looked up again after this time: another process may have revoked it.
const REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// A key that was just made. Its text is shown once and kept nowhere.
pub struct NewApiKey {
    pub record: ApiKeyRecord,
    pub text: String,
}

impl std::fmt::Debug for NewApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewApiKey").field("record", &self.record).finish_non_exhaustive()
    }
}

/// The keys of one archive.
pub struct ApiKeys {
    archive: Arc<dyn Archive>,
    clock: Arc<dyn Clock>,
    // Held for a look, never across an await.
    seen: Mutex<Seen>,
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKeys")
    }
}

#[derive(Default)]
struct Seen {
    /// Only keys that exist: strangers cannot fill it.
    keys: HashMap<String, (Arc<ApiKeyRecord>, Instant)>,
    /// Keys are never deleted, so this stays true once it is.
    any: bool,
    none_at: Option<Instant>,
}

impl ApiKeys {
    pub fn new(archive: Arc<dyn Archive>, clock: Arc<dyn Clock>) -> Self {
        Self { archive, clock, seen: Mutex::default() }
    }

    /// Durable, and valid, when this returns.
    pub async fn create(&self, name: &str) -> Result<NewApiKey, StoreError> {
        let id = format!("{:016x}", rand::random::<u64>());
        let secret: String = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
        let record = ApiKeyRecord {
            name: name.to_owned(),
            digest: Hash::of(secret.as_bytes()),
            created_at: self.clock.now(),
            revoked_at: None,
            id,
        };
        self.archive.put_api_key(record.clone()).await?;
        self.seen.lock().any = true;
        let text = format!("{PREFIX}{}_{secret}", record.id);
        Ok(NewApiKey { record, text })
    }

    /// Every key that was ever made, oldest first.
    pub async fn all(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.archive.api_keys().await
    }

    /// It lets nobody in any more. Whether it did until now; an error if there is no such key.
    pub async fn revoke(&self, id: &str) -> Result<bool, StoreError> {
        let revoked = self.archive.revoke_api_key(id, self.clock.now()).await?;
        self.seen.lock().keys.remove(id);
        if !revoked && self.archive.api_key(id).await?.is_none() {
            return Err(StoreError::unknown("api key", id));
        }
        Ok(revoked)
    }

    /// Whether a key was ever made. Revoking the last one does not open the doors again.
    pub async fn any(&self) -> Result<bool, StoreError> {
        let now = Instant::now();
        {
            let seen = self.seen.lock();
            if seen.any || seen.none_at.is_some_and(|at| now.duration_since(at) < REMEMBERED_FOR) {
                return Ok(seen.any);
            }
        }
        let any = !self.archive.api_keys().await?.is_empty();
        let mut seen = self.seen.lock();
        seen.any |= any;
        seen.none_at = Some(now);
        Ok(seen.any)
    }

    /// Whether there is one that lets somebody in.
    pub async fn any_live(&self) -> Result<bool, StoreError> {
        Ok(self.all().await?.iter().any(|key| key.revoked_at.is_none()))
    }

    /// The key that this is the text of, if it is one and is not revoked.
    pub async fn check(&self, text: &str) -> Result<Option<Arc<ApiKeyRecord>>, StoreError> {
        let Some((id, secret)) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')) else {
            return Ok(None);
        };
        let Some(record) = self.find(id).await? else { return Ok(None) };
        let fits = same(&record.digest, &Hash::of(secret.as_bytes()));
        Ok((fits && record.revoked_at.is_none()).then_some(record))
    }

    async fn find(&self, id: &str) -> Result<Option<Arc<ApiKeyRecord>>, StoreError> {
        let now = Instant::now();
        if let Some((record, at)) = self.seen.lock().keys.get(id)
            && now.duration_since(*at) < REMEMBERED_FOR
        {
            return Ok(Some(record.clone()));
        }
        let Some(record) = self.archive.api_key(id).await?.map(Arc::new) else { return Ok(None) };
        self.seen.lock().keys.insert(id.to_owned(), (record.clone(), now));
        Ok(Some(record))
    }
}

/// Takes the same time wherever they differ.
fn same(one: &Hash, other: &Hash) -> bool {
    let differing = one.0.iter().zip(other.0).fold(0, |differing, (a, b)| differing | (a ^ b));
    std::hint::black_box(differing) == 0
}
