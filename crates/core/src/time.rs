//! Moments, in milliseconds since the Unix epoch. Callers pass the time in; the core reads no clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The moment `after` later; the far future rather than an overflow.
    pub fn plus(self, after: Duration) -> Self {
        let millis = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// The moment `before` earlier; the distant past rather than an overflow.
    pub fn minus(self, before: Duration) -> Self {
        let millis = i64::try_from(before.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// How long from `earlier` until this moment; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// RFC 3339 in UTC with milliseconds, as people read it.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl std::str::FromStr for Timestamp {
    type Err = crate::ids::InvalidId;

    /// Parses RFC 3339.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let moment = text.trim().parse::<jiff::Timestamp>();
        let moment = moment.map_err(|_| crate::ids::InvalidId { text: text.to_owned(), expected: "time" })?;
        Ok(Self(moment.as_millisecond()))
    }
}

/// `#[serde(with = "switchyard_core::time::rfc3339")]`: for documents that people and other programs read.
pub mod rfc3339 {
    use super::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(at: &Timestamp, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(at)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Timestamp, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }

    /// The same for an optional moment.
    pub mod option {
        use super::Timestamp;
        use serde::{Deserialize, Deserializer, Serializer};

        pub fn serialize<S: Serializer>(at: &Option<Timestamp>, s: S) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => s.collect_str(at),
                None => s.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Timestamp>, D::Error> {
            let text = Option::<std::borrow::Cow<'de, str>>::deserialize(d)?;
            text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_rfc3339_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_700_000_000_123).to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn the_far_future_does_not_overflow() {
        assert_eq!(Timestamp::from_millis(5).plus(Duration::MAX).as_millis(), i64::MAX);
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
    }
}
