//! A decoder for the answers of a server in RESP 2. Nothing is copied before an answer is complete.

use std::io;

use redis::Value;

const ROOM_MIN: usize = 64 * 1024;
/// A buffer that grew beyond this for one large answer is not kept.
const ROOM_KEPT_MAX: usize = 1024 * 1024;
/// Deeper than the answer of any script.
const DEPTH_MAX: usize = 16;

pub(crate) enum Answer {
    Value(Value),
    /// A refusal of the server: a code and a sentence.
    Refused(String),
}

/// Received bytes that were not decoded yet.
#[derive(Default)]
pub(crate) struct Inbox {
    room: Vec<u8>,
    read: usize,
    filled: usize,
    /// Number of bytes needed before the next attempt to decode.
    needed: usize,
}

/// The bytes are not a valid answer of Redis.
#[derive(Debug)]
pub(crate) struct Malformed;

enum Stop {
    /// The smallest number of bytes that the answer needs.
    Short(usize),
    Malformed,
}

impl Inbox {
    /// Lets `read` fill free space of the buffer; returns the number of bytes read.
    pub(crate) fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        if self.filled == self.room.len() {
            self.room.copy_within(self.read.., 0);
            (self.filled, self.read) = (self.filled - self.read, 0);
        }
        let wanted = self.needed.max(2 * self.filled).max(ROOM_MIN);
        if self.filled == self.room.len() || self.room.len() < self.needed {
            self.room.resize(wanted, 0);
        }
        let count = read(&mut self.room[self.filled..])?;
        self.filled += count;
        Ok(count)
    }

    /// The next answer, if it is complete.
    pub(crate) fn next(&mut self) -> Result<Option<Answer>, Malformed> {
        let waiting = &self.room[self.read..self.filled];
        if waiting.is_empty() || waiting.len() < self.needed {
            return Ok(None);
        }
        match end_of(waiting, 0, 0) {
            Err(Stop::Short(needed)) => {
                self.needed = needed;
                Ok(None)
            }
            Err(Stop::Malformed) => Err(Malformed),
            Ok(end) => {
                let answer = match waiting[0] {
                    b'-' => Answer::Refused(String::from_utf8_lossy(&waiting[1..end - 2]).into_owned()),
                    _ => Answer::Value(value_at(waiting, 0).ok_or(Malformed)?.0),
                };
                self.forget(end);
                Ok(Some(answer))
            }
        }
    }

    fn forget(&mut self, count: usize) {
        self.read += count;
        self.needed = 0;
        if self.read == self.filled {
            (self.read, self.filled) = (0, 0);
            if self.room.len() > ROOM_KEPT_MAX {
                self.room = Vec::new();
            }
        }
    }
}

/// The end of the value at this offset.
fn end_of(bytes: &[u8], at: usize, depth: usize) -> Result<usize, Stop> {
    let Some(kind) = bytes.get(at) else { return Err(Stop::Short(at + 1)) };
    let Some((line, after)) = line_at(bytes, at + 1) else { return Err(Stop::Short(bytes.len() + 1)) };
    match kind {
        b'+' | b'-' | b':' => Ok(after),
        b'$' => match number(line).ok_or(Stop::Malformed)? {
            length if length < 0 => Ok(after),
            length => {
                let end = usize::try_from(length).ok().and_then(|length| length.checked_add(after + 2));
                let end = end.ok_or(Stop::Malformed)?;
                if end <= bytes.len() { Ok(end) } else { Err(Stop::Short(end)) }
            }
        },
        b'*' if depth < DEPTH_MAX => {
            let count = number(line).ok_or(Stop::Malformed)?;
            (0..count).try_fold(after, |at, _| end_of(bytes, at, depth + 1))
        }
        _ => Err(Stop::Malformed),
    }
}

/// The value at this offset, and its end. Only called when the value is complete.
fn value_at(bytes: &[u8], at: usize) -> Option<(Value, usize)> {
    let (line, after) = line_at(bytes, at + 1)?;
    Some(match bytes[at] {
        b'+' => (Value::SimpleString(std::str::from_utf8(line).ok()?.to_owned()), after),
        b':' => (Value::Int(number(line)?), after),
        b'$' => match usize::try_from(number(line)?) {
            Err(_) => (Value::Nil, after),
            Ok(length) => (Value::BulkString(bytes.get(after..after + length)?.to_vec()), after + length + 2),
        },
        b'*' => {
            let Ok(count) = usize::try_from(number(line)?) else { return Some((Value::Nil, after)) };
            let (mut values, mut at) = (Vec::with_capacity(count), after);
            for _ in 0..count {
                let (value, end) = value_at(bytes, at)?;
                values.push(value);
                at = end;
            }
            (Value::Array(values), at)
        }
        _ => return None,
    })
}

/// The rest of a line, and the offset of the next one.
fn line_at(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    Some((rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]), at + end + 1))
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"*5\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*1\r\n+OK\r\n*0\r\n";

    fn take_in(inbox: &mut Inbox, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = inbox.fill(|room| io::Read::read(&mut rest, room)).unwrap();
            assert!(count > 0);
        }
    }

    fn expected() -> Value {
        let ok = Value::Array(vec![Value::SimpleString("OK".to_owned())]);
        let text = Value::BulkString(b"a\r\nb".to_vec());
        Value::Array(vec![Value::Int(-7), text, Value::Nil, ok, Value::Array(Vec::new())])
    }

    #[test]
    fn an_answer_is_read_wherever_it_is_cut() {
        for cut in 1..ANSWER.len() {
            let mut inbox = Inbox::default();
            take_in(&mut inbox, &ANSWER[..cut]);
            assert!(inbox.next().unwrap().is_none(), "cut after {cut}");
            take_in(&mut inbox, &[&ANSWER[cut..], b"-ERR no\r\n"].concat());
            let Some(Answer::Value(value)) = inbox.next().unwrap() else { panic!("cut after {cut}") };
            assert_eq!(value, expected());
            let Some(Answer::Refused(text)) = inbox.next().unwrap() else { panic!("cut after {cut}") };
            assert_eq!(text, "ERR no");
            assert!(inbox.next().unwrap().is_none());
        }
    }

    #[test]
    fn an_answer_may_be_larger_than_the_room() {
        let long = vec![b'x'; 3 * ROOM_MIN];
        let answer = [format!("${}\r\n", long.len()).as_bytes(), &long, b"\r\n"].concat();
        let mut inbox = Inbox::default();
        for _ in 0..3 {
            take_in(&mut inbox, ANSWER);
            take_in(&mut inbox, &answer);
            assert!(matches!(inbox.next(), Ok(Some(Answer::Value(value))) if value == expected()));
            assert!(
                matches!(inbox.next(), Ok(Some(Answer::Value(Value::BulkString(found)))) if found == long)
            );
        }
    }

    #[test]
    fn what_redis_would_not_say_is_refused() {
        for bytes in [&b"HTTP/1.1 400\r\n"[..], b"$x\r\n", b"*1\r\n-ERR inside\r\n", &b"*1\r\n".repeat(20)] {
            let mut inbox = Inbox::default();
            take_in(&mut inbox, bytes);
            assert!(inbox.next().is_err(), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
