//! Parses server-sent events.

use bytes::Bytes;

/// One message: the fields between two empty lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: Option<u64>,
    pub(crate) data: String,
}

/// A parser of server-sent events, with the bytes that it has not parsed yet.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    bytes: Vec<u8>,
    /// The bytes before this index contain no line end.
    searched: usize,
    open: Message,
}

impl Reader {
    pub(crate) fn push(&mut self, bytes: &Bytes) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message. Skips comments and unknown fields.
    pub(crate) fn next(&mut self) -> Option<Message> {
        loop {
            let line = self.line()?;
            if line.is_empty() {
                let message = std::mem::take(&mut self.open);
                if message.id.is_some() || !message.data.is_empty() {
                    return Some(message);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => self.open.id = value.parse().ok(),
                "data" => {
                    if !self.open.data.is_empty() {
                        self.open.data.push('\n');
                    }
                    self.open.data.push_str(value);
                }
                _ => {}
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        let Some(end) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let rest = self.bytes.split_off(self.searched + end + 1);
        let line = std::mem::replace(&mut self.bytes, rest);
        self.searched = 0;
        let line = String::from_utf8_lossy(&line);
        Some(line.trim_end_matches(['\n', '\r']).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_whole_however_the_bytes_come() {
        let text = ": nothing new\n\nid: 1\nevent: a\ndata: {\"x\":\n\ndata: two\r\ndata: lines\r\n\r\nid: 7\ndata:\n\nid: 8";
        for size in 1..text.len() {
            let mut reader = Reader::default();
            let mut seen = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                reader.push(&Bytes::copy_from_slice(piece));
                seen.extend(std::iter::from_fn(|| reader.next()));
            }
            let message = |id, data: &str| Message { id, data: data.to_owned() };
            let expected = [message(Some(1), "{\"x\":"), message(None, "two\nlines"), message(Some(7), "")];
            assert_eq!(seen, expected, "in pieces of {size}");
        }
    }
}
