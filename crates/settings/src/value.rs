//! The types of settings: how each is parsed and printed, and the error for an invalid text.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};
use switchyard_base::HumanDuration;

/// The error for a text that is not a valid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    pub message: String,
    pub hint: Option<String>,
}

impl BadValue {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds a hint that names the expected value, unless there is a hint already.
    pub(crate) fn or_expected(mut self, expected: &str) -> Self {
        self.hint.get_or_insert_with(|| format!("expected {expected}"));
        self
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, " ({hint})"))
    }
}

impl std::error::Error for BadValue {}

fn not_a(text: &str, what: &str) -> BadValue {
    let shown: String = text.chars().take(60).collect();
    BadValue::new(format!("`{shown}` is not {what}"))
}

pub(crate) trait Value: Sized + PartialOrd {
    /// A description of valid values, printed after "expected".
    const EXPECTED: &'static str;

    fn parse(text: &str) -> Result<Self, BadValue>;

    /// The value as text that [`Value::parse`] accepts; masked if it is secret.
    fn show(&self) -> String;

    /// The value of an optional setting that is not set.
    fn unset() -> Option<Self> {
        None
    }
}

impl<T: Value> Value for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(text: &str) -> Result<Self, BadValue> {
        T::parse(text).map(Some)
    }

    fn show(&self) -> String {
        self.as_ref().map(T::show).unwrap_or_default()
    }

    fn unset() -> Option<Self> {
        Some(None)
    }
}

impl Value for String {
    const EXPECTED: &'static str = "text";

    fn parse(text: &str) -> Result<Self, BadValue> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn parse(text: &str) -> Result<Self, BadValue> {
        if text.is_empty() { Err(not_a(text, "a path")) } else { Ok(Self::from(text)) }
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Value for bool {
    const EXPECTED: &'static str = "`true` or `false`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(not_a(text, "true or false")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for NonZeroUsize {
    const EXPECTED: &'static str = "a whole number";

    fn parse(text: &str) -> Result<Self, BadValue> {
        text.parse().map_err(|_| match text.parse::<usize>() {
            Ok(_) => BadValue::new("it must be at least 1"),
            Err(_) => not_a(text, "a whole number"),
        })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for SocketAddr {
    const EXPECTED: &'static str = "an address with a port such as `127.0.0.1:7070` or `[::1]:7070`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        text.parse().map_err(|_| not_a(text, "an address with a port"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for Duration {
    const EXPECTED: &'static str = "a duration such as `500ms`, `30s` or `1h30m`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        let parsed: Result<HumanDuration, _> = text.parse();
        parsed.map(|read| read.0).map_err(|bad| BadValue { message: bad.message, hint: Some(bad.hint) })
    }

    fn show(&self) -> String {
        HumanDuration(*self).to_string()
    }
}

/// Parses a duration: a bare number counts in `unit` seconds, such as `3600`; any other text is one like `1h`.
fn counted(text: &str, unit: f64, what: &str) -> Result<Duration, BadValue> {
    match text.parse::<f64>() {
        Ok(number) => Duration::try_from_secs_f64(number * unit)
            .map_err(|_| not_a(text, &format!("a number of {what}"))),
        Err(_) => <Duration as Value>::parse(text),
    }
}

/// A length of time whose bare numbers are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub Duration);

impl Value for Seconds {
    const EXPECTED: &'static str = "a number of seconds, or a duration such as `30s` or `1h`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        counted(text, 1.0, "seconds").map(Self)
    }

    fn show(&self) -> String {
        self.0.as_secs_f64().to_string()
    }
}

/// A length of time whose bare numbers are minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minutes(pub Duration);

impl Value for Minutes {
    const EXPECTED: &'static str = "a number of minutes, or a duration such as `30s` or `1h`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        counted(text, 60.0, "minutes").map(Self)
    }

    fn show(&self) -> String {
        (self.0.as_secs_f64() / 60.0).to_string()
    }
}

impl Value for u32 {
    const EXPECTED: &'static str = "a whole number";

    fn parse(text: &str) -> Result<Self, BadValue> {
        text.parse().map_err(|_| not_a(text, "a whole number"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// A factor by which a value grows repeatedly: at least 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Factor(pub f64);

impl Value for Factor {
    const EXPECTED: &'static str = "a number from 1";

    fn parse(text: &str) -> Result<Self, BadValue> {
        match text.parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor >= 1.0 => Ok(Self(factor)),
            _ => Err(not_a(text, "a number from 1")),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A number of bytes, written with a unit: `512KiB`, `16MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub usize);

const SIZES: [(&str, usize); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl Value for ByteSize {
    const EXPECTED: &'static str = "a size such as `512KiB`, `16MiB` or `1GiB`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let size = SIZES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()));
        let bytes = number.parse::<usize>().ok().zip(size);
        let bytes = bytes.and_then(|(number, (_, size))| number.checked_mul(*size));
        bytes.map(Self).ok_or_else(|| not_a(text, "a size"))
    }

    fn show(&self) -> String {
        let (unit, size) = SIZES
            .into_iter()
            .find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size))
            .unwrap_or(("B", 1));
        format!("{}{unit}", self.0 / size)
    }
}

/// A fraction, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Ratio(pub f64);

impl Value for Ratio {
    const EXPECTED: &'static str = "a number from 0 to 1";

    fn parse(text: &str) -> Result<Self, BadValue> {
        match text.parse::<f64>() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Self(ratio)),
            _ => Err(not_a(text, "a number from 0 to 1")),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogFormat {
    Pretty,
    Json,
}

impl Value for LogFormat {
    const EXPECTED: &'static str = "`pretty` or `json`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        match text {
            "pretty" => Ok(Self::Pretty),
            "json" => Ok(Self::Json),
            _ => Err(not_a(text, "a log format")),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Pretty => "pretty".to_owned(),
            Self::Json => "json".to_owned(),
        }
    }
}

/// The address of a server: scheme, host and port, without a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerUrl(String);

/// The value that means "no server".
const NO_SERVER: &str = "none";

impl ServerUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for ServerUrl {
    const EXPECTED: &'static str = "an address such as `http://127.0.0.1:7070`, or `none`";

    fn parse(text: &str) -> Result<Self, BadValue> {
        if text == NO_SERVER {
            return Ok(Self(text.to_owned()));
        }
        let bare = text.trim_end_matches('/');
        let host = bare.strip_prefix("http://").or_else(|| bare.strip_prefix("https://"));
        match host {
            Some(host)
                if !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control()) =>
            {
                Ok(Self(bare.to_owned()))
            }
            // The text before an `@` may contain a password, so the message does not quote it.
            _ if text.contains('@') => Err(BadValue::new("it is not an http or https address")),
            _ => Err(not_a(text, "an http or https address")),
        }
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A secret text, masked wherever it is printed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the request that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(MASK)
    }
}

const MASK: &str = "********";

/// Names and values of headers; they are secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeaderList(Vec<(String, String)>);

impl HeaderList {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for HeaderList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Value for HeaderList {
    const EXPECTED: &'static str = "names and values such as `authorization=Bearer%20abc,x-team=a`";

    /// Parses the format of OpenTelemetry: `name=value` pairs separated by commas, values percent-encoded.
    fn parse(text: &str) -> Result<Self, BadValue> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let read = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            let (name, value) = (name.trim().to_ascii_lowercase(), percent_decoded(value.trim())?);
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let fits = !name.is_empty()
                && name.bytes().all(token)
                && value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            fits.then_some((name, value))
        };
        let headers: Option<Vec<_>> = pairs.map(read).collect();
        headers.map(Self).ok_or_else(|| BadValue::new("it is not a list of headers"))
    }

    fn show(&self) -> String {
        MASK.to_owned()
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

impl Value for Secret {
    const EXPECTED: &'static str = "text";

    fn parse(text: &str) -> Result<Self, BadValue> {
        // A secret may be sent in an HTTP header.
        match text.chars().all(|c| c == '\t' || (!c.is_control() && c.is_ascii())) {
            true => Ok(Self(text.to_owned())),
            false => Err(BadValue::new("it has characters that cannot be sent in a header")),
        }
    }

    fn show(&self) -> String {
        MASK.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: Value>(text: &str) -> String {
        T::parse(text).map_or_else(|bad| bad.to_string(), |value| value.show())
    }

    #[test]
    fn values_are_read_and_shown() {
        assert_eq!(shown::<ByteSize>("16MiB"), "16MiB");
        assert_eq!(shown::<ByteSize>("2048 kib"), "2MiB");
        assert_eq!(shown::<ByteSize>("16"), "`16` is not a size");
        assert_eq!(shown::<ByteSize>("99999999999999999999GiB"), "`99999999999999999999GiB` is not a size");
        assert_eq!(shown::<Duration>("90s"), "1m30s");
        assert_eq!(shown::<Duration>("90"), "`90` is not a duration (add a unit: `90s` or `90ms`)");
        assert_eq!(shown::<Seconds>("0.5"), "0.5");
        assert_eq!(shown::<Seconds>("1h"), "3600");
        assert_eq!(shown::<Seconds>("-1"), "`-1` is not a number of seconds");
        assert_eq!(shown::<Minutes>("90s"), "1.5");
        assert_eq!(shown::<Factor>("0.5"), "`0.5` is not a number from 1");
        assert_eq!(shown::<NonZeroUsize>("0"), "it must be at least 1");
        assert_eq!(shown::<NonZeroUsize>("-3"), "`-3` is not a whole number");
        assert_eq!(shown::<Ratio>("NaN"), "`NaN` is not a number from 0 to 1");
        assert_eq!(shown::<ServerUrl>("https://yard.example/"), "https://yard.example");
        assert_eq!(shown::<ServerUrl>("ftp://me:secret@x"), "it is not an http or https address");
        assert_eq!(shown::<Secret>("hush"), "********");
        let headers = HeaderList::parse("Authorization=Bearer%20a%3D, x-team=b").unwrap();
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("authorization", "Bearer a="), ("x-team", "b")]);
        for bad in ["hush", "=hush", "a b=hush", "a=%zz", "a=%", "a=%0a"] {
            assert_eq!(shown::<HeaderList>(bad), "it is not a list of headers", "{bad}");
        }
        assert_eq!(format!("{:?}", Secret::parse("hush").unwrap()), "********");
    }
}
