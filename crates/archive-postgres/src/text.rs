//! Escapes text for Postgres, which accepts every character but NUL. NUL is valid in JSON, and so in names, keys and
//! prompts that come from JSON: refusing it here would strand a run that was accepted.

use std::borrow::Cow;

/// Unicode reserves this character for internal use, so no text has it by accident.
const ESCAPE: char = '\u{fdd0}';

/// Escapes a text. Different texts stay different.
pub(crate) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

pub(crate) fn read(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ESCAPE => plain.push(if chars.next() == Some('0') { '\0' } else { ESCAPE }),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_and_stays_apart() {
        let texts = ["", "plain", "a\0b", "a\u{fdd0}0b", "\0\u{fdd0}\0", "\u{fdd0}", "\u{fdd0}1"];
        for text in texts {
            assert!(!stored(text).contains('\0'));
            assert_eq!(read(stored(text).into_owned()), text);
        }
        let all: std::collections::HashSet<_> = texts.iter().map(|text| stored(text)).collect();
        assert_eq!(all.len(), texts.len());
    }
}
