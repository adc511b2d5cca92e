//! API keys: their text, and their form in lists.

use std::fmt;

use serde::{Deserialize, Serialize};
use switchyard_core::{Hash, Timestamp, time};
use switchyard_store::ApiKeyRecord;

const PREFIX: &str = "swk_";
const ID_CHARS: usize = 16;

/// The text of an API key: `swk_<id>_<secret>`. The server finds the key by its id. The secret has 256 random bits, and
/// the server stores only its SHA-256.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText {
    id: String,
    secret: String,
}

impl KeyText {
    /// Creates a key from random bits.
    pub fn drawn(id: u64, secret: [u8; 32]) -> Self {
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { id: format!("{id:016x}"), secret }
    }

    /// Parses the text of a key; `None` if it does not have the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        Some(Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The SHA-256 of the secret, which the server stores.
    pub fn digest(&self) -> Hash {
        Hash::of(self.secret.as_bytes())
    }
}

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_{}", self.id, self.secret)
    }
}

/// Omits the secret.
impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyText").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A key that its holder has generated: the server never sees the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnKey {
    pub id: String,
    /// SHA-256 of the secret.
    pub digest: Hash,
}

impl DrawnKey {
    /// Whether the id is valid: sixteen hexadecimal digits.
    pub fn has_valid_id(&self) -> bool {
        self.id.len() == ID_CHARS && self.id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }
}

impl From<&KeyText> for DrawnKey {
    fn from(text: &KeyText) -> Self {
        Self { id: text.id.clone(), digest: text.digest() }
    }
}

/// An API key in the form that clients see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKeyView {
    pub id: String,
    /// The name of the key's holder or its purpose.
    pub name: String,
    #[serde(with = "time::rfc3339")]
    pub created_at: Timestamp,
    #[serde(with = "time::rfc3339::option")]
    pub revoked_at: Option<Timestamp>,
}

impl From<ApiKeyRecord> for ApiKeyView {
    fn from(record: ApiKeyRecord) -> Self {
        let ApiKeyRecord { id, name, created_at, revoked_at, .. } = record;
        Self { id, name, created_at, revoked_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written_and_is_not_shown_by_accident() {
        let key = KeyText::drawn(7, [9; 32]);
        let text = key.to_string();
        assert_eq!((text.len(), KeyText::parse(&text)), (4 + 16 + 1 + 64, Some(key.clone())));
        assert!(!format!("{key:?}").contains("0909"));
        assert!(DrawnKey::from(&key).has_valid_id());
        for wrong in ["", "swk_", "swk_1", "1_2"] {
            assert_eq!(KeyText::parse(wrong), None, "{wrong}");
        }
    }
}
