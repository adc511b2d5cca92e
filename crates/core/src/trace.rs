//! The place of a run in a distributed trace (W3C trace context).
//!
//! The ids of spans follow from run, node and claim, so that processes that never talk to each other name the same
//! span alike: one that executes a step, one that its call reaches, and the one that reports how the step went.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::InvalidId;
use crate::{Hash, RunId};

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl $name {
            fn of(text: &str) -> Self {
                let mut bytes = [0; $bytes];
                bytes.copy_from_slice(&Hash::of(text.as_bytes()).0[..$bytes]);
                Self(bytes)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;

            /// Parses lowercase hexadecimal digits; all zeros are not an id.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let invalid = || InvalidId { text: text.to_owned(), expected: $expected };
                let digits = text.len() == 2 * $bytes
                    && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                if !digits || text.bytes().all(|byte| byte == b'0') {
                    return Err(invalid());
                }
                let mut bytes = [0; $bytes];
                for (at, byte) in bytes.iter_mut().enumerate() {
                    *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| invalid())?;
                }
                Ok(Self(bytes))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

hex_id!(
    /// A trace: everything that one request led to.
    TraceId, 16, "trace id (32 hexadecimal digits)"
);

hex_id!(
    /// A span of a trace: one timed operation.
    SpanId, 8, "span id (16 hexadecimal digits)"
);

impl TraceId {
    /// The trace of a run that belongs to no other trace.
    pub fn of_run(run: RunId) -> Self {
        Self::of(&format!("trace {run}"))
    }
}

impl SpanId {
    /// The span of a run, from its acceptance or its retry to its end.
    pub fn of_run(run: RunId, attempt: u32) -> Self {
        Self::of(&format!("run {run} {attempt}"))
    }

    /// The span of a step, from a claim to its outcome.
    pub fn of_step(run: RunId, node: &str, claim: u32) -> Self {
        Self::of(&format!("step {run} {claim} {node}"))
    }

    /// The span of a node's wait after that claim.
    pub fn of_wait(run: RunId, node: &str, claim: u32) -> Self {
        Self::of(&format!("wait {run} {claim} {node}"))
    }
}

/// The trace that a run belongs to. Runs that it starts belong to it as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceLink {
    pub trace: TraceId,
    /// The caller's span, if the submission named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SpanId>,
    /// Whether its spans are to be kept.
    pub sampled: bool,
    /// Trace state of other systems, passed on as they wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_lowercase_digits_and_never_zero() {
        let id: SpanId = "00f067aa0ba902b7".parse().unwrap();
        assert_eq!(id.to_string(), "00f067aa0ba902b7");
        for text in
            ["00F067AA0BA902B7", "00f067aa0ba902b", "0000000000000000", "+0f067aa0ba902b7", "é0f067aa0ba902b"]
        {
            assert!(text.parse::<SpanId>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_claim_of_every_node_has_a_span_of_its_own() {
        let run = RunId::new(crate::Timestamp::from_millis(1), 2, 3);
        let ids = [
            SpanId::of_run(run, 1),
            SpanId::of_run(run, 2),
            SpanId::of_step(run, "a", 1),
            SpanId::of_step(run, "a", 2),
            SpanId::of_step(run, "b", 1),
            SpanId::of_wait(run, "a", 1),
        ];
        let distinct: std::collections::HashSet<_> = ids.into_iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
