//! The arguments of a command, already encoded as RESP. Used for the calls of every graph step: a checkpoint has many
//! small parts, and they are written straight into the send buffer.

use redis::Cmd;

#[derive(Clone, Debug, Default)]
pub(crate) struct EncodedCall {
    bytes: Vec<u8>,
    count: usize,
}

impl EncodedCall {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), count: 0 }
    }

    pub(crate) fn text(&mut self, word: &str) {
        self.join(&[word.as_bytes()]);
    }

    /// Adds one argument made of several parts.
    pub(crate) fn join(&mut self, parts: &[&[u8]]) {
        line(b'$', parts.iter().map(|part| part.len()).sum(), &mut self.bytes);
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.bytes.extend_from_slice(b"\r\n");
        self.count += 1;
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.join(&[digits(number, &mut [0; 20])]);
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.bytes.extend_from_slice(&others.bytes);
        self.count += others.count;
    }

    /// Number of arguments.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Number of encoded bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the encoded command to a buffer.
    pub(crate) fn send_with(&self, unsent: &mut Vec<u8>) {
        unsent.reserve(self.bytes.len() + 24);
        line(b'*', self.count, unsent);
        unsent.extend_from_slice(&self.bytes);
    }

    /// The same call as a [`Cmd`], for a connection that encodes by itself.
    pub(crate) fn command(&self) -> Cmd {
        let mut command = Cmd::with_capacity(self.count, self.bytes.len());
        let mut rest = self.bytes.as_slice();
        while let Some((word, after)) = first(rest) {
            command.arg(word);
            rest = after;
        }
        command
    }
}

fn line(kind: u8, number: usize, bytes: &mut Vec<u8>) {
    bytes.push(kind);
    bytes.extend_from_slice(digits(number as u64, &mut [0; 20]));
    bytes.extend_from_slice(b"\r\n");
}

fn digits(mut number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut first = room.len();
    loop {
        first -= 1;
        room[first] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return &room[first..];
        }
    }
}

/// The first argument, and the bytes after it.
fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    let length: usize = std::str::from_utf8(bytes.get(1..end)?).ok()?.parse().ok()?;
    let (word, after) = bytes.get(end + 2..)?.split_at_checked(length)?;
    Some((word, after.get(2..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_same_in_both_forms() {
        let mut values = EncodedCall::default();
        values.join(&[b"a/", b"b\r\n$1", b""]);
        values.number(u64::MAX);
        let mut words = EncodedCall::with_capacity(64);
        words.text("EVALSHA");
        words.text("");
        words.number(0);
        words.extend(&values);
        let mut sent = b"before".to_vec();
        words.send_with(&mut sent);
        let expected =
            redis::cmd("EVALSHA").arg("").arg(0).arg("a/b\r\n$1").arg(u64::MAX).get_packed_command();
        assert_eq!(sent, [b"before", expected.as_slice()].concat());
        assert_eq!(words.command().get_packed_command(), expected);
        assert_eq!(
            (words.count(), values.size()),
            (5, sent.len() - 6 - b"*5\r\n$7\r\nEVALSHA\r\n$0\r\n\r\n$1\r\n0\r\n".len())
        );
    }
}
