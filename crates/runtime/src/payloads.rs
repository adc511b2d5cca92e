//! Values in and out of storage: small ones inline, large ones in the CAS; callers see no difference.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use switchyard_core::Payload;
use switchyard_core::payload::INLINE_BYTES_MAX;
use switchyard_store::{Cas, StoreError};

/// The largest value a node may take or give.
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
    /// Whether the value is gone or damaged: trying again does not bring it back.
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

    /// Puts a value away, durably.
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
        // Kept by its hash, a payload is no change to anything: an answer that was lost leaves nothing unknown.
        Ok(Payload::Cas(self.cas.put(content).await.map_err(StoreError::not_applied)?))
    }

    /// Brings a value back.
    pub async fn load(&self, payload: &Payload) -> Result<Value, PayloadError> {
        match payload {
            Payload::Json(raw) => Ok(serde_json::from_str(raw.get())?),
            Payload::Cas(reference) => Ok(serde_json::from_slice(&self.cas.get(*reference).await?)?),
        }
    }

    /// Brings a value back, or names one that is gone or damaged: a reference stands in its place.
    pub async fn show(&self, payload: &Payload) -> Result<Value, PayloadError> {
        match (self.load(payload).await, payload) {
            (Err(error), Payload::Cas(reference)) if error.is_loss() => {
                Ok(switchyard_api::payload_reference(*reference))
            }
            (shown, _) => shown,
        }
    }

    /// Brings its text back, without looking into it.
    pub async fn load_text(&self, payload: &Payload) -> Result<Box<RawValue>, PayloadError> {
        match payload {
            Payload::Json(raw) => Ok((**raw).to_owned()),
            Payload::Cas(reference) => Ok(serde_json::from_slice(&self.cas.get(*reference).await?)?),
        }
    }
}
