//! Makes control characters visible. A terminal executes them: they move the cursor, overwrite earlier output, set
//! the title, or change the direction of the text.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Whether a terminal executes the character: C0, DEL, C1, and characters that change the direction of text.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

/// Escapes control characters, such as `\u{1b}`, and keeps line breaks.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_obeyed(c) && !is_layout(c), |c, out| out.extend(c.escape_default()))
}

/// Escapes control characters including line breaks, so that the text stays on one line.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    replaced(text, is_obeyed, |c, out| out.extend(c.escape_default()))
}

/// Escapes control characters in the strings of a JSON document. Outside of strings there is only white space.
pub(crate) fn json(document: &str) -> Cow<'_, str> {
    replaced(
        document,
        |c| is_obeyed(c) && !c.is_ascii_whitespace(),
        |c, out| {
            // All of them have four digits.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        },
    )
}

/// Replaces control characters by as many bytes, so that offsets stay valid.
pub(crate) fn in_place(text: &str) -> String {
    let replace = |c: char, out: &mut String| match c.len_utf8() {
        3 => out.push('\u{fffd}'),
        bytes => out.extend(std::iter::repeat_n('?', bytes)),
    };
    replaced(text, |c| is_obeyed(c) && !is_layout(c) && c != '\r', replace).into_owned()
}

fn replaced(text: &str, is_bad: impl Fn(char) -> bool, replace: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) { replace(c, &mut out) } else { out.push(c) }
    }
    out.into()
}

/// A writer that escapes the text written through it.
pub(crate) struct OneLine<W>(pub(crate) W);

impl<W: Write> Write for OneLine<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(&one_line(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\r\u{202e}b\u{2066}\u{7}é\n\tc";

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(text(EVIL), "a\\u{1b}[2J\\u{9b}31m\\u{7f}\\r\\u{202e}b\\u{2066}\\u{7}é\n\tc");
        assert_eq!(one_line(EVIL), "a\\u{1b}[2J\\u{9b}31m\\u{7f}\\r\\u{202e}b\\u{2066}\\u{7}é\\n\\tc");
        assert!(matches!(text("é ✓ 日本\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_the_same_document() {
        let value = serde_json::json!({ "evil": EVIL });
        for document in
            [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()]
        {
            let shown = json(&document);
            assert!(!shown.contains(|c| is_obeyed(c) && !c.is_ascii_whitespace()), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn places_in_a_text_do_not_move() {
        let shown = in_place(EVIL);
        assert_eq!(shown.len(), EVIL.len());
        assert_eq!(shown.find('c'), EVIL.find('c'));
        assert_eq!(text(&shown), shown.replace('\r', "\\r"));
    }
}
