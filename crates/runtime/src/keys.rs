//! API keys: created, checked, revoked.
//!
//! A key is `swk_<id>_<secret>`. The id finds the record; the secret is 256 random bits, of which only the SHA-256 is
//! stored. A slow hash, as for passwords, would add nothing: it makes guessing expensive, and 256 random bits cannot
//! be guessed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_api::{DrawnKey, KeyText};
use switchyard_core::{Hash, OperationId};
use switchyard_store::{Access, ApiKeyRecord, Clock, Mutation, StoreError};
use tokio::time::Instant;

use crate::engine::{mutate, request};
use crate::{EngineError, Principal};

/// How long a key is cached: another process may have revoked it.
const REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// How long a cached key stays valid while the archive does not answer, so that HTTP workers can still settle their
/// tasks. A key that is revoked meanwhile can be used that much longer.
const REMEMBERED_IN_OUTAGE: Duration = Duration::from_secs(300);

/// A newly created key.
#[derive(Debug)]
pub struct NewApiKey {
    pub record: ApiKeyRecord,
    /// The key's text, if this call drew it. It is shown once and never stored.
    pub text: Option<KeyText>,
}

/// The keys of one archive.
pub struct ApiKeys {
    access: Arc<dyn Access>,
    clock: Arc<dyn Clock>,
    // Locked briefly, never across an await.
    seen: Mutex<KeyCache>,
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKeys")
    }
}

#[derive(Default)]
struct KeyCache {
    /// Only existing keys are cached, so that invalid keys cannot fill the memory.
    keys: HashMap<String, (Arc<ApiKeyRecord>, Look)>,
    /// Keys are never deleted, so this stays true once it is.
    any: bool,
    none: Option<Look>,
}

/// The times at which the archive was last asked and last answered.
#[derive(Clone, Copy)]
struct Look {
    answered_at: Instant,
    /// Later than `answered_at` while the archive does not answer.
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

    /// Whether the archive failed to answer a moment ago, so that not every request asks it again.
    fn is_awaited(self) -> bool {
        self.asked_at > self.answered_at && self.is_fresh()
    }

    /// Extends the cached answer while the archive is unavailable; `None` if the answer is too old.
    fn in_vain(self) -> Option<Self> {
        let counts = self.answered_at.elapsed() < REMEMBERED_IN_OUTAGE;
        counts.then(|| Self { asked_at: Instant::now(), ..self })
    }
}

impl ApiKeys {
    pub fn new(access: Arc<dyn Access>, clock: Arc<dyn Clock>) -> Self {
        Self { access, clock, seen: Mutex::default() }
    }

    /// Creates a key, from the caller's own random text or a new one. The key is durable and valid when this returns.
    /// A repetition with the same operation id returns the key of the first request.
    pub async fn create(
        &self,
        by: &Principal,
        operation: &OperationId,
        name: &str,
        drawn: Option<DrawnKey>,
    ) -> Result<NewApiKey, EngineError> {
        let request = request(by, operation, "create_key", &(name, &drawn), self.clock.now())?;
        let (text, drawn) = match drawn {
            Some(drawn) => (None, drawn),
            None => {
                let text = KeyText::drawn(rand::random(), rand::random());
                let drawn = DrawnKey::from(&text);
                (Some(text), drawn)
            }
        };
        let record = ApiKeyRecord {
            id: drawn.id.clone(),
            name: name.to_owned(),
            digest: drawn.digest,
            created_at: self.clock.now(),
            revoked_at: None,
        };
        let put = || async { Ok(Mutation::PutApiKey(Box::new(record.clone()))) };
        let made = mutate(&*self.access, &request, put).await?.api_key()?;
        self.seen.lock().any = true;
        if made == record.id && text.is_some() {
            return Ok(NewApiKey { record, text });
        }
        let kept = self.get(&made).await?;
        if made == drawn.id && kept.digest != drawn.digest {
            return Err(EngineError::BadRequest(format!("there is another key with the id `{made}`")));
        }
        Ok(NewApiKey { record: kept, text: None })
    }

    /// Every key that was ever created, oldest first.
    pub async fn all(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.access.api_keys().await
    }

    /// The key with this id, also if it is revoked.
    pub async fn get(&self, id: &str) -> Result<ApiKeyRecord, EngineError> {
        let record = self.access.api_key(id).await?;
        Ok(record.ok_or_else(|| StoreError::unknown("api key", id))?)
    }

    /// Revokes the key. Returns whether it was valid until now; fails if there is no such key.
    pub async fn revoke(
        &self,
        by: &Principal,
        operation: &OperationId,
        id: &str,
    ) -> Result<bool, EngineError> {
        let request = request(by, operation, "revoke_key", &id, self.clock.now())?;
        let revoke = || async { Ok(Mutation::RevokeApiKey { id: id.to_owned(), at: self.clock.now() }) };
        let revoked = mutate(&*self.access, &request, revoke).await?.changed()?;
        self.seen.lock().keys.remove(id);
        if !revoked && self.access.api_key(id).await?.is_none() {
            return Err(StoreError::unknown("api key", id).into());
        }
        Ok(revoked)
    }

    /// Whether any key was ever created. Revoking the last key does not open the API again.
    ///
    /// While there is none, every call asks the archive, so that the first key applies to the next request, whichever
    /// process created it. Only while the archive does not answer, its last answer is used for a while.
    pub async fn any(&self) -> Result<bool, StoreError> {
        {
            let seen = self.seen.lock();
            if seen.any || seen.none.is_some_and(Look::is_awaited) {
                return Ok(seen.any);
            }
        }
        let answer = self.access.any_api_key().await;
        let mut seen = self.seen.lock();
        match answer {
            Ok(any) => {
                seen.any |= any;
                seen.none = Some(Look::now());
            }
            Err(error) => {
                let still = seen.none.and_then(Look::in_vain);
                seen.none = Some(still.ok_or(error)?);
            }
        }
        Ok(seen.any)
    }

    /// Whether at least one key is valid.
    pub async fn any_live(&self) -> Result<bool, StoreError> {
        Ok(self.all().await?.iter().any(|key| key.revoked_at.is_none()))
    }

    /// The record of the key with this text, if the key is valid.
    pub async fn check(&self, text: &str) -> Result<Option<Arc<ApiKeyRecord>>, StoreError> {
        let Some(text) = KeyText::parse(text) else { return Ok(None) };
        let Some(record) = self.find(text.id()).await? else { return Ok(None) };
        let fits = same(&record.digest, &text.digest());
        Ok((fits && record.revoked_at.is_none()).then_some(record))
    }

    async fn find(&self, id: &str) -> Result<Option<Arc<ApiKeyRecord>>, StoreError> {
        let known = self.seen.lock().keys.get(id).cloned();
        if let Some((record, _)) = known.as_ref().filter(|(_, look)| look.is_fresh()) {
            return Ok(Some(record.clone()));
        }
        let (record, look) = match self.access.api_key(id).await {
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

/// Compares two hashes in constant time.
fn same(one: &Hash, other: &Hash) -> bool {
    let differing = one.0.iter().zip(other.0).fold(0, |differing, (a, b)| differing | (a ^ b));
    std::hint::black_box(differing) == 0
}
