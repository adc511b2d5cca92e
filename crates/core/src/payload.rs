//! Inputs and outputs of nodes: JSON, inline while it is small, else a reference into the CAS.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::Hash;

/// Payloads up to this many bytes travel inline; larger ones go to the CAS.
pub const INLINE_BYTES_MAX: usize = 4 * 1024;

/// JSON that the core carries without parsing it. Cloning is cheap.
#[derive(Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    Json(Arc<RawValue>),
    Cas(CasRef),
}

/// A reference to a large payload, with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CasRef {
    pub hash: Hash,
    pub bytes: u64,
}

impl fmt::Display for CasRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cas://{}", self.hash)
    }
}

impl Payload {
    pub fn null() -> Self {
        Self::Json(RawValue::NULL.to_owned().into())
    }

    /// Inline JSON of any size: the caller decides what belongs in the CAS.
    pub fn inline(json: Box<RawValue>) -> Self {
        Self::Json(json.into())
    }

    pub fn from_value(value: &serde_json::Value) -> Self {
        match serde_json::value::to_raw_value(value) {
            Ok(raw) => Self::inline(raw),
            // A `Value` has string keys and finite numbers only, so it always serialises.
            Err(_) => Self::null(),
        }
    }

    /// The JSON text, if it is here and not in the CAS.
    pub fn as_inline(&self) -> Option<&str> {
        match self {
            Self::Json(raw) => Some(raw.get()),
            Self::Cas(_) => None,
        }
    }

    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Json(raw) => raw.get().len() as u64,
            Self::Cas(reference) => reference.bytes,
        }
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::null()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Json(a), Self::Json(b)) => a.get() == b.get(),
            (Self::Cas(a), Self::Cas(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(raw) => f.write_str(raw.get()),
            Self::Cas(reference) => write!(f, "{reference}"),
        }
    }
}

// Derived deserialisation would go through `Arc<RawValue>`, which serde does not offer.
impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Owned {
            Json(Box<RawValue>),
            Cas(CasRef),
        }
        Ok(match Owned::deserialize(d)? {
            Owned::Json(raw) => Self::inline(raw),
            Owned::Cas(reference) => Self::Cas(reference),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_survive_text() {
        for payload in [
            Payload::null(),
            Payload::from_value(&serde_json::json!({"a": [1, 2.5, "x"]})),
            Payload::Cas(CasRef { hash: Hash::of(b"x"), bytes: 1 << 40 }),
        ] {
            let text = serde_json::to_string(&payload).unwrap();
            assert_eq!(serde_json::from_str::<Payload>(&text).unwrap(), payload, "{text}");
        }
    }
}
