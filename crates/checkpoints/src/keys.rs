//! Every key and every field, from functions in this file. `docs/guide/langgraph.md` has the table.
//!
//! A thread's keys carry its escaped id as their hash tag. Parts of a field are escaped and joined with `/`.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::encoded_call::EncodedCall;
use crate::error::Error;

/// The version of the storage format; each thread records its own in `meta`.
pub const FORMAT: &str = "1";

/// The default namespace.
pub const NAMESPACE_DEFAULT: &str = "default";

/// The escaped form of an empty part. No other text escapes to it: otherwise a `%` is always followed by two digits.
const EMPTY: &str = "%";

/// The key names of a namespace. Savers of one namespace see the same threads.
#[derive(Clone, Debug)]
pub struct Keyspace {
    /// `lg:{namespace}:thread:`, without the thread.
    prefix: String,
}

impl Keyspace {
    pub fn new(namespace: &str) -> Result<Self, Error> {
        if namespace.is_empty() {
            return Err(Error::Invalid("the namespace is empty; leave it out for `default`".to_owned()));
        }
        Ok(Self { prefix: format!("lg:{}:thread:", escape(namespace)) })
    }

    pub fn thread(&self, id: &str) -> ThreadKeys {
        let stem = format!("{}{{{}}}:", self.prefix, escape(id));
        ThreadKeys(ThreadKeys::NAMES.map(|name| format!("{stem}{name}")))
    }

    /// Appends all keys of a thread as arguments, after their number.
    pub(crate) fn thread_words(&self, id: &str, words: &mut EncodedCall) {
        let id = escape(id);
        words.number(ThreadKeys::NAMES.len() as u64);
        for name in ThreadKeys::NAMES {
            words.join(&[self.prefix.as_bytes(), b"{", id.as_bytes(), b"}:", name.as_bytes()]);
        }
    }

    /// The pattern that matches the `meta` key of every thread.
    pub fn pattern(&self) -> String {
        format!("{}{{*}}:meta", self.prefix)
    }

    /// The thread that a `meta` key belongs to.
    pub fn thread_of(&self, meta_key: &str) -> Option<String> {
        unescape(meta_key.strip_prefix(&self.prefix)?.strip_prefix('{')?.strip_suffix("}:meta")?)
    }
}

/// All keys of a thread, in the order in which every script takes them.
#[derive(Clone, Debug)]
pub struct ThreadKeys([String; 7]);

impl ThreadKeys {
    const NAMES: [&'static str; 7] = ["meta", "index", "data", "blobs", "writes", "tasks", "runs"];

    pub fn all(&self) -> &[String; 7] {
        &self.0
    }

    /// Hash: `format`, `thread`, `seq`, `at`, and `ttl_ms` if the thread has a TTL of its own.
    pub fn meta(&self) -> &str {
        &self.0[0]
    }

    /// Sorted set, all scores 0: `ns/seq/checkpoint`, so that a range of it is a namespace in the order of writing.
    pub fn index(&self) -> &str {
        &self.0[1]
    }

    /// Hash: `ns/checkpoint` → the checkpoint's record.
    pub fn data(&self) -> &str {
        &self.0[2]
    }

    /// Hash: `ns/channel/version` → a channel's value.
    pub fn blobs(&self) -> &str {
        &self.0[3]
    }

    /// Hash: `ns/checkpoint/task` → the task's writes.
    pub fn writes(&self) -> &str {
        &self.0[4]
    }
}

/// `ns/`, which begins every field and every member of a namespace.
pub fn namespace_prefix(ns: &str) -> String {
    format!("{}/", escape(ns))
}

/// A version as a part of the field `ns/channel/version`. Numbers carry a mark, because `1` and `"1"` are two
/// versions.
pub fn version_text(text: &str) -> Cow<'_, str> {
    escape(text)
}

pub fn version_number(number: &str) -> String {
    format!("#{number}")
}

/// Splits a member of `index` into its parts.
pub fn split_member(member: &str) -> Option<(String, u64, String)> {
    let mut parts = member.split('/');
    let (ns, seq, id) = (parts.next()?, parts.next()?, parts.next()?);
    Some((unescape(ns)?, seq.parse().ok()?, unescape(id)?))
}

/// Whether a byte is escaped: separators, characters of patterns, and bytes that a terminal would not show.
fn is_special(byte: u8) -> bool {
    SPECIAL[byte as usize]
}

const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte <= b' ' as usize {
        special[byte] = true;
        byte += 1;
    }
    special[0x7f] = true;
    let others = b"%/:{}#*?[]\\^\"'";
    let mut number = 0;
    while number < others.len() {
        special[others[number] as usize] = true;
        number += 1;
    }
    special
};

pub fn escape(part: &str) -> Cow<'_, str> {
    if part.is_empty() {
        return Cow::Borrowed(EMPTY);
    }
    if !part.bytes().any(is_special) {
        return Cow::Borrowed(part);
    }
    let mut escaped = String::with_capacity(part.len() + 16);
    for character in part.chars() {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() && is_special(byte) => {
                let _ = write!(escaped, "%{byte:02X}");
            }
            _ => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

pub fn unescape(part: &str) -> Option<String> {
    if part == EMPTY {
        return Some(String::new());
    }
    let mut plain = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(percent) = rest.find('%') {
        plain.push_str(&rest[..percent]);
        let digits = rest.get(percent + 1..percent + 3)?;
        plain.push(char::from(u8::from_str_radix(digits, 16).ok()?));
        rest = &rest[percent + 3..];
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_id_as_the_hash_tag_of_every_key() {
        let keys = Keyspace::new("app").unwrap().thread("user:1");
        assert_eq!(keys.meta(), "lg:app:thread:{user%3A1}:meta");
        assert!(keys.all().iter().all(|key| key.starts_with("lg:app:thread:{user%3A1}:")));
    }

    #[test]
    fn any_text_comes_back() {
        for text in ["", "%", "%%25", "a/b:c{d}e", "{}", "\0\n\t ", "ünï 🦀", "*?[x]\\^", "#1", "a%2Fb"] {
            let escaped = escape(text);
            assert_eq!(unescape(&escaped).as_deref(), Some(text), "{escaped}");
            assert!(!escaped.contains(['/', '{', '}', ':']), "{escaped}");
            assert!(!escaped.is_empty(), "an empty hash tag would not be one");
            let space = Keyspace::new("n").unwrap();
            assert_eq!(space.thread_of(space.thread(text).meta()).as_deref(), Some(text));
        }
    }

    #[test]
    fn different_parts_make_different_fields() {
        assert_ne!(escape("a/b") + "/c", escape("a") + "/" + version_text("b/c"));
        assert_ne!(version_text("1"), version_number("1"));
        assert_ne!(version_text("#1"), version_number("1"));
    }

    #[test]
    fn what_was_not_escaped_is_not_taken() {
        assert_eq!(unescape("%4"), None);
        assert_eq!(unescape("%zz"), None);
        assert!(Keyspace::new("").is_err());
    }
}
