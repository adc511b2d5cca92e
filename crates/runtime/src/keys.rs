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

/// While the archive does not answer, what was last seen counts for this long: workers over HTTP can go on settling
/// what runs. A key that is revoked meanwhile can be used that much longer.
const REMEMBERED_IN_OUTAGE: Duration = Duration::from_secs(300);

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
    keys: HashMap<String, (Arc<ApiKeyRecord>, Look)>,
    /// Keys are never deleted, so this stays true once it is.
    any: bool,
    none: Option<Look>,
}

/// When the archive was asked.
#[derive(Clone, Copy)]
struct Look {
    answered_at: Instant,
    /// Later than the answer, while it does not answer.
    asked_at: Instant,
}

impl Look {
    fn now() -> Self {
        let now = Instant::now();
        Self { answered_at: now, asked_at: now }
    }

    fn is_fresh(self) -> bool {
        self.asked_at.elapsed() < REMEMBERED_FOR
    }

    /// Asked in vain. None if too much time has passed since the answer.
    fn in_vain(self) -> Option<Self> {
        let counts = self.answered_at.elapsed() < REMEMBERED_IN_OUTAGE;
        counts.then(|| Self { asked_at: Instant::now(), ..self })
    }
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
        {
            let seen = self.seen.lock();
            if seen.any || seen.none.is_some_and(Look::is_fresh) {
                return Ok(seen.any);
            }
        }
        let answer = self.archive.api_keys().await;
        let mut seen = self.seen.lock();
        match answer {
            Ok(keys) => {
                seen.any |= !keys.is_empty();
                seen.none = Some(Look::now());
            }
            Err(error) => {
                let still = seen.none.and_then(Look::in_vain);
                seen.none = Some(still.ok_or(error)?);
            }
        }
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
        let known = self.seen.lock().keys.get(id).cloned();
        if let Some((record, _)) = known.as_ref().filter(|(_, look)| look.is_fresh()) {
            return Ok(Some(record.clone()));
        }
        let (record, look) = match self.archive.api_key(id).await {
            Ok(None) => return Ok(None),
            Ok(Some(record)) => (Arc::new(record), Look::now()),
            Err(error) => {
                let still = known.and_then(|(record, look)| Some((record, look.in_vain()?)));
                still.ok_or(error)?
            }
        };
        self.seen.lock().keys.insert(id.to_owned(), (record.clone(), look));
        Ok(Some(record))
    }
}

/// Takes the same time wherever they differ.
fn same(one: &Hash, other: &Hash) -> bool {
    let differing = one.0.iter().zip(other.0).fold(0, |differing, (a, b)| differing | (a ^ b));
    std::hint::black_box(differing) == 0
}
