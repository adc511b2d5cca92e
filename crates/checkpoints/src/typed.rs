//! A value as LangGraph's serializer encoded it: the name of a format, and the bytes.

use std::borrow::Cow;

use crate::keys;

/// An encoded value. It is stored as `format:bytes`, with the bytes unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    pub format: Cow<'static, str>,
    pub bytes: Vec<u8>,
}

impl Typed {
    pub fn new(format: &str, bytes: &[u8]) -> Self {
        Self { format: Cow::Owned(format.to_owned()), bytes: bytes.to_vec() }
    }

    pub(crate) fn encode(format: &str, bytes: &[u8]) -> Vec<u8> {
        Self::parts(&keys::escape(format), bytes).concat()
    }

    /// The stored form, in parts; `format` is escaped.
    pub(crate) fn parts<'a>(format: &'a str, bytes: &'a [u8]) -> [&'a [u8]; 3] {
        [format.as_bytes(), b":", bytes]
    }

    /// Decodes the stored form, reusing the buffer that came from the server.
    pub(crate) fn decode(mut stored: Vec<u8>) -> Option<Self> {
        let colon = stored.iter().position(|byte| *byte == b':')?;
        let format = match &stored[..colon] {
            b"msgpack" => Cow::Borrowed("msgpack"),
            other => Cow::Owned(keys::unescape(std::str::from_utf8(other).ok()?)?),
        };
        stored.drain(..=colon);
        Some(Self { format, bytes: stored })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_stored_as_they_are() {
        let stored = Typed::encode("msgpack", &[0, b':', 255]);
        assert_eq!(stored, b"msgpack:\x00:\xff");
        assert_eq!(Typed::decode(stored), Some(Typed::new("msgpack", &[0, b':', 255])));
    }

    #[test]
    fn a_format_may_have_any_name() {
        for format in ["", "msgpack+aes", "a:b", "%", "ключ"] {
            assert_eq!(Typed::decode(Typed::encode(format, b"x")), Some(Typed::new(format, b"x")));
        }
        assert_eq!(Typed::decode(b"no colon".to_vec()), None);
    }
}
