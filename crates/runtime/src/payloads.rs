//! Stores and loads values: small ones inline, large ones in the CAS; callers see no difference.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use switchyard_core::Payload;
use switchyard_core::payload::INLINE_BYTES_MAX;
use switchyard_store::{Cas, StoreError};

/// The largest input or output of a node, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Clone)]
pub struct Payloads {
    cas: Arc<dyn Cas>,
}

impl std::fmt::Debug for Payloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Payloads")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error("{bytes} bytes is more than the {PAYLOAD_BYTES_MAX} that a value may have")]
    TooLarge { bytes: usize },
    #[error("not valid JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PayloadError {
    /// Whether the value is gone or damaged, so that a retry does not help.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::NotJson(_) | Self::Store(StoreError::Unknown { .. } | StoreError::Corrupt(_)))
    }
}

impl Payloads {
    pub fn new(cas: Arc<dyn Cas>) -> Self {
        Self { cas }
    }

    pub fn cas(&self) -> &Arc<dyn Cas> {
        &self.cas
    }

    /// Stores a value durably.
    pub async fn keep(&self, value: &Value) -> Result<Payload, PayloadError> {
        if value.is_null() {
            return Ok(Payload::null());
        }
        self.keep_text(serde_json::value::to_raw_value(value)?).await
    }

    pub async fn keep_text(&self, text: Box<RawValue>) -> Result<Payload, PayloadError> {
        let bytes = text.get().len();
        if bytes <= INLINE_BYTES_MAX {
            return Ok(Payload::inline(text));
        }
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(PayloadError::TooLarge { bytes });
        }
        let content = Bytes::from(String::from(Box::<str>::from(text)).into_bytes());
        // A payload is stored under its hash, so storing it again changes nothing: a lost answer is safe to retry.
        Ok(Payload::Cas(self.cas.put(content).await.map_err(StoreError::not_applied)?))
    }

    /// Loads a value.
    pub async fn load(&self, payload: &Payload) -> Result<Value, PayloadError> {
        match payload {
            Payload::Json(raw) => Ok(serde_json::from_str(raw.get())?),
            Payload::Cas(reference) => Ok(serde_json::from_slice(&self.cas.get(*reference).await?)?),
        }
    }

    /// Loads a value, or returns a reference in its place if it is gone or damaged.
    pub async fn show(&self, payload: &Payload) -> Result<Value, PayloadError> {
        match (self.load(payload).await, payload) {
            (Err(error), Payload::Cas(reference)) if error.is_loss() => {
                Ok(switchyard_api::payload_reference(*reference))
            }
            (shown, _) => shown,
        }
    }

    /// Loads the JSON text of a value without parsing it.
    pub async fn load_text(&self, payload: &Payload) -> Result<Box<RawValue>, PayloadError> {
        match payload {
            Payload::Json(raw) => Ok((**raw).to_owned()),
            Payload::Cas(reference) => Ok(serde_json::from_slice(&self.cas.get(*reference).await?)?),
        }
    }
}
