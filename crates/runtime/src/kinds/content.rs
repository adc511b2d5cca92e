//! Converts external bytes to JSON values and to text for messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The largest size of a server's response or a program's output.
pub(super) const CONTENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A string, or `{"base64": …}` if the bytes are not text.
pub(super) fn text_or_base64(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::String(text),
        Err(error) => json!({ "base64": STANDARD.encode(error.as_bytes()) }),
    }
}

/// The beginning of a text for a message, on one line.
pub(super) fn excerpt(bytes: &[u8], chars_max: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(chars_max).collect()
}

/// The text for a message, with its line breaks. Control characters are removed, because terminals show messages.
pub(super) fn harmless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
