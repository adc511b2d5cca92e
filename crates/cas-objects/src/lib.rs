//! The CAS in an object store: `ab/abcdef…`, an object for each payload, named by its SHA-256.
//!
//! Unlike the other CAS implementations, an object store has a race: between the check of an object's age and its
//! removal, another process may put it again. That moment is short and the grace period of a retention policy is
//! long, so nothing has referred to a removed object for that long.

mod place;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayload};
use switchyard_core::{CasRef, Hash};
use switchyard_store::{Cas, StoreError};

pub use place::InvalidPlace;

/// Payloads in an object store that any number of processes share.
#[derive(Debug, Clone)]
pub struct ObjectCas {
    objects: Arc<dyn ObjectStore>,
    /// The path before the object names, as a folder.
    prefix: Path,
    /// The URL, for messages.
    name: Arc<str>,
}

impl ObjectCas {
    /// Opens `s3://bucket/prefix` or `file:///folder`. `settings` are those of the object store, by the names that
    /// AWS uses (`aws_access_key_id`, `aws_region`, `aws_endpoint`, `aws_allow_http`, …); unrelated settings are
    /// ignored. The query parameters of the URL override them.
    pub fn open<K: AsRef<str>, V: Into<String>>(
        url: &str,
        settings: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, InvalidPlace> {
        let settings = settings.into_iter().map(|(key, value)| (key.as_ref().to_owned(), value.into()));
        let (objects, prefix, name) = place::open(url, settings)?;
        Ok(Self { objects, prefix, name: name.into() })
    }

    /// Wraps any other store of the crate `object_store`.
    pub fn over(objects: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        let name = objects.to_string().into();
        Self { objects, prefix, name }
    }

    fn shelf(&self, number: u8) -> Path {
        self.prefix.clone().join(format!("{number:02x}"))
    }

    fn path_of(&self, hash: Hash) -> Path {
        self.shelf(hash.0[0]).join(hash.hex())
    }

    /// Hashes of one shelf that are greater than `after` and old enough, in order.
    async fn aged_on(&self, shelf: u8, min_age: Duration, after: Option<Hash>) -> Result<Vec<Hash>, Error> {
        let now = now();
        let mut listed = self.objects.list(Some(&self.shelf(shelf)));
        let mut aged = Vec::new();
        while let Some(object) = listed.try_next().await? {
            let hash: Option<Hash> =
                object.location.filename().and_then(|hex| format!("sha256:{hex}").parse().ok());
            let age = now.duration_since(object.last_modified.into()).unwrap_or_default();
            aged.extend(hash.filter(|hash| age >= min_age && after.is_none_or(|after| *hash > after)));
        }
        aged.sort_unstable();
        Ok(aged)
    }

    fn cannot(&self, what: &str, error: &Error) -> StoreError {
        StoreError::unavailable(format!("cannot {what} in {}: {error}", self.name))
    }
}

#[async_trait]
impl Cas for ObjectCas {
    async fn put(&self, content: Bytes) -> Result<CasRef, StoreError> {
        let reference = CasRef { hash: Hash::of(&content), bytes: content.len() as u64 };
        // An existing object is put again, because that renews its age.
        let put = self.objects.put(&self.path_of(reference.hash), PutPayload::from_bytes(content)).await;
        put.map_err(|e| self.cannot(&format!("keep payload {reference}"), &e))?;
        Ok(reference)
    }

    async fn get(&self, reference: CasRef) -> Result<Bytes, StoreError> {
        let read = async { self.objects.get(&self.path_of(reference.hash)).await?.bytes().await };
        let content = match read.await {
            Ok(content) => content,
            Err(Error::NotFound { .. }) => return Err(StoreError::unknown("payload", reference)),
            Err(e) => return Err(self.cannot(&format!("read payload {reference}"), &e)),
        };
        if Hash::of(&content) != reference.hash {
            let message = format!("the object in {} is not the content of {reference}", self.name);
            return Err(StoreError::Corrupt(message));
        }
        Ok(content)
    }

    async fn aged(
        &self,
        min_age: Duration,
        after: Option<Hash>,
        limit: usize,
    ) -> Result<Vec<Hash>, StoreError> {
        let mut found = Vec::new();
        for shelf in after.map_or(0, |hash| hash.0[0])..=u8::MAX {
            // Not every store lists in order, so a shelf is read whole; there are 256 of them.
            let aged = self.aged_on(shelf, min_age, after).await;
            found.extend(aged.map_err(|e| self.cannot("list payloads", &e))?);
            if found.len() >= limit {
                found.truncate(limit);
                break;
            }
        }
        Ok(found)
    }

    async fn remove(&self, hash: Hash, min_age: Duration) -> Result<bool, StoreError> {
        let path = self.path_of(hash);
        let removed = async {
            let object = self.objects.head(&path).await?;
            if now().duration_since(object.last_modified.into()).unwrap_or_default() < min_age {
                return Ok(false);
            }
            self.objects.delete(&path).await.map(|()| true)
        };
        match removed.await {
            Err(Error::NotFound { .. }) => Ok(false),
            removed => removed.map_err(|e| self.cannot(&format!("remove payload {hash}"), &e)),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "objects carry their store's time, not that of runs")]
fn now() -> SystemTime {
    SystemTime::now()
}
