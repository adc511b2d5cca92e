//! Durations as people write them: `500ms`, `30s`, `1h30m`, `7d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// Units from large to small; a text must use them in this order, each at most once.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The longest duration: ten years of 365 days.
pub const DURATION_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The regular expression of a duration, for the JSON Schema.
pub const DURATION_PATTERN: &str = "^(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?(\\d+ms)?$";

/// A duration with millisecond precision that reads and writes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration(pub Duration);

/// The text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadDuration {
    pub message: String,
    pub hint: String,
}

impl fmt::Display for BadDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadDuration {}

impl BadDuration {
    fn new(text: &str, hint: impl Into<String>) -> Self {
        let shown: String = text.chars().take(40).collect();
        Self { message: format!("`{shown}` is not a duration"), hint: hint.into() }
    }
}

impl FromStr for HumanDuration {
    type Err = BadDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let usage = "write a number and a unit, such as `500ms`, `30s`, `2h`, `1h30m` or `7d`";
        let trimmed = text.trim();
        if !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit()) {
            return Err(BadDuration::new(text, format!("add a unit: `{trimmed}s` or `{trimmed}ms`")));
        }
        let millis = parse_millis(trimmed).ok_or_else(|| BadDuration::new(text, usage))?;
        let duration = Duration::from_millis(millis);
        if duration > DURATION_MAX {
            return Err(BadDuration::new(text, "the longest duration is ten years, `3650d`"));
        }
        Ok(Self(duration))
    }
}

fn parse_millis(mut text: &str) -> Option<u64> {
    let mut units = UNITS.iter();
    let mut total = 0u64;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at(digits);
        let name_len = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, rest) = rest.split_at(name_len);
        let (_, millis) = units.find(|(unit, _)| *unit == name)?;
        // A number that overflows u64 is far above the maximum: it saturates, and the caller reports it as too long.
        let number = if number.is_empty() { return None } else { number.parse().unwrap_or(u64::MAX) };
        total = total.saturating_add(millis.saturating_mul(number));
        text = rest;
    }
    Some(total)
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if millis == 0 {
            return f.write_str("0s");
        }
        for (unit, size) in UNITS {
            if millis >= size {
                write!(f, "{}{unit}", millis / size)?;
                millis %= size;
            }
        }
        Ok(())
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for HumanDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A duration such as `500ms`, `30s`, `2h`, `1h30m` or `7d`, at most ten years.",
            "pattern": DURATION_PATTERN,
            "minLength": 2,
            "examples": ["500ms", "30s", "1h30m"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_and_written_back() {
        for (text, millis, shown) in [
            ("500ms", 500, "500ms"),
            ("30s", 30_000, "30s"),
            ("2h", 7_200_000, "2h"),
            ("1h30m", 5_400_000, "1h30m"),
            ("7d", 604_800_000, "7d"),
            ("90s", 90_000, "1m30s"),
            ("1m500ms", 60_500, "1m500ms"),
            ("0s", 0, "0s"),
            ("3650d", 315_360_000_000, "3650d"),
        ] {
            let parsed: HumanDuration = text.parse().unwrap();
            assert_eq!((parsed.0.as_millis(), parsed.to_string()), (millis, shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_a_hint() {
        for (text, hint) in [
            ("30", "add a unit: `30s` or `30ms`"),
            ("", "write a number"),
            ("s", "write a number"),
            ("1.5h", "write a number"),
            ("-1s", "write a number"),
            ("1m1h", "write a number"),
            ("1s1s", "write a number"),
            ("5 minutes", "write a number"),
            ("3651d", "the longest duration is ten years"),
            ("99999999999999999999999h", "the longest duration is ten years"),
        ] {
            let error = text.parse::<HumanDuration>().unwrap_err();
            assert!(error.hint.starts_with(hint), "{text}: {}", error.hint);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,20}") {
            let _ = text.parse::<HumanDuration>();
        }

        #[test]
        fn durations_survive_text(millis in 0u64..315_360_000_000) {
            let duration = HumanDuration(Duration::from_millis(millis));
            prop_assert_eq!(duration.to_string().parse::<HumanDuration>().unwrap(), duration);
        }
    }
}
