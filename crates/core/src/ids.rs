//! Identifiers. Callers make them (randomness is not pure); the core only carries them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Timestamp;

/// Crockford's base 32: no I, L, O, U, so that an id survives being read aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ENCODED_LEN: usize = 26;

/// A run: 48 bits of milliseconds, 64 random bits, 16 bits of partition.
///
/// Ordering by id is ordering by acceptance. The partition travels in the id, so that every key of a run can be
/// derived from its id alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(u128);

impl RunId {
    /// Builds an id from the acceptance time, 64 bits of randomness and a partition.
    pub fn new(at: Timestamp, random: u64, partition: u16) -> Self {
        let millis = (at.as_millis().max(0) as u128) & 0xffff_ffff_ffff;
        Self((millis << 80) | (u128::from(random) << 16) | u128::from(partition))
    }

    /// The partition whose keys and streams this run uses.
    pub fn partition(self) -> u16 {
        self.0 as u16
    }

    /// The next id in the order: no id lies between them.
    pub fn successor(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// When the id was drawn.
    pub fn at(self) -> Timestamp {
        Timestamp::from_millis((self.0 >> 80) as i64)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; ENCODED_LEN];
        for (i, slot) in text.iter_mut().enumerate() {
            let shift = 5 * (ENCODED_LEN - 1 - i);
            *slot = ALPHABET[((self.0 >> shift) & 31) as usize];
        }
        f.write_str("run_")?;
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {expected}")]
pub struct InvalidId {
    pub text: String,
    pub expected: &'static str,
}

impl FromStr for RunId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid =
            || InvalidId { text: text.to_owned(), expected: "run id (run_ and 26 letters and digits)" };
        let body = text.strip_prefix("run_").ok_or_else(invalid)?;
        // 26 × 5 = 130 bits: the first character may only use its low three.
        if body.len() != ENCODED_LEN || body.as_bytes()[0] > b'7' {
            return Err(invalid());
        }
        body.bytes()
            .try_fold(0u128, |acc, byte| {
                let digit = ALPHABET.iter().position(|&c| c == byte)?;
                Some((acc << 5) | digit as u128)
            })
            .map(Self)
            .ok_or_else(invalid)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A pending human decision: `appr_…`.
    ApprovalId
}

text_id! {
    /// A change to the graph of a running run: `patch_…`.
    PatchId
}

/// The caller's id of a command: the same id with the same command takes effect once, however often it is sent.
///
/// It is the caller's `Idempotency-Key`, or drawn where the command comes in: `op_…`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Arc<str>")]
pub struct OperationId(Arc<str>);

/// The text cannot be an operation id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation id has 1 to {} printable ASCII characters", OperationId::CHARS_MAX)]
pub struct InvalidOperationId;

impl OperationId {
    pub const CHARS_MAX: usize = 200;

    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidOperationId> {
        let text = text.into();
        let fits = (1..=Self::CHARS_MAX).contains(&text.len());
        let printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if fits && printable { Ok(Self(text)) } else { Err(InvalidOperationId) }
    }

    /// Builds an id from 128 random bits.
    pub fn drawn(random: u128) -> Self {
        Self(format!("op_{random:032x}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<Arc<str>> for OperationId {
    type Error = InvalidOperationId;

    fn try_from(text: Arc<str>) -> Result<Self, Self::Error> {
        Self::new(text)
    }
}

impl FromStr for OperationId {
    type Err = InvalidOperationId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A SHA-256 of some content, written `sha256:<hex>`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub fn of(content: &[u8]) -> Self {
        use sha2::Digest;
        Self(sha2::Sha256::digest(content).into())
    }

    /// The 64 hex digits alone.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidId { text: text.to_owned(), expected: "hash (sha256: and 64 hex digits)" };
        let hex = text.strip_prefix("sha256:").ok_or_else(invalid)?;
        if hex.len() != 64 || !hex.is_ascii() {
            return Err(invalid());
        }
        let mut bytes = [0u8; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).map_err(|_| invalid())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn run_ids_survive_text(random: u64, at in 0i64..(1 << 47), partition: u16) {
            let id = RunId::new(Timestamp::from_millis(at), random, partition);
            prop_assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
            prop_assert_eq!((id.partition(), id.at().as_millis()), (partition, at));
        }

        #[test]
        fn any_text_is_answered_not_panicked(text in ".{0,60}") {
            let _ = text.parse::<RunId>();
            let _ = text.parse::<Hash>();
            let _ = format!("run_{text}").parse::<RunId>();
            let _ = format!("sha256:{text}").parse::<Hash>();
        }
    }

    #[test]
    fn an_operation_id_is_short_and_printable() {
        for good in ["x", "order 7", &"a".repeat(200), OperationId::drawn(7).as_str()] {
            assert_eq!(OperationId::new(good).map(|id| id.as_str().to_owned()).as_deref(), Ok(good));
        }
        for bad in ["", "a\nb", "tab\there", "naïve", &"a".repeat(201)] {
            assert_eq!(OperationId::new(bad), Err(InvalidOperationId), "{bad:?}");
            assert!(serde_json::from_value::<OperationId>(bad.into()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn later_runs_sort_after_earlier_ones() {
        let early = RunId::new(Timestamp::from_millis(1), u64::MAX, 9).to_string();
        let late = RunId::new(Timestamp::from_millis(2), 0, 0).to_string();
        assert!(early < late);
    }
}
