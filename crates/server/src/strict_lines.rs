//! Rejects request heads with a bare LF instead of CR LF. hyper accepts a bare LF, some proxies do not, and a request
//! that two parsers read differently can smuggle another request. [`StrictLines`] therefore overwrites a bare LF before
//! hyper reads it; hyper then answers 400 and closes the connection.
//!
//! Bodies may contain any bytes, so the check tracks where heads begin and end, by the same rules as hyper.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest line that is buffered: no header that gives the length of a body needs more.
const LINE_BYTES_MAX: usize = 256;

/// A connection whose request heads are checked.
#[derive(Debug)]
pub(crate) struct StrictLines<S> {
    stream: S,
    place: Place,
    /// Set when the connection becomes a WebSocket, which has no lines to check.
    is_upgraded: Arc<AtomicBool>,
}

impl<S> StrictLines<S> {
    pub(crate) fn new(stream: S, is_upgraded: Arc<AtomicBool>) -> Self {
        Self { stream, place: Place::Head(Head::default()), is_upgraded }
    }
}

/// The part of a request that the next byte belongs to.
#[derive(Debug)]
enum Place {
    Head(Head),
    Body {
        left: u64,
    },
    ChunkSize(Line),
    /// A chunk with its trailing CR LF.
    Chunk {
        left: u64,
    },
    Trailers(Line),
    /// Later bytes are not checked: hyper closes the connection.
    Spoiled,
}

#[derive(Debug, Default)]
struct Head {
    line: Line,
    has_begun: bool,
    length: u64,
    /// Whether the last `Transfer-Encoding` header ends in `chunked`; `None` without such a header.
    is_chunked: Option<bool>,
}

/// A line that is not complete yet.
#[derive(Debug, Default)]
struct Line {
    text: Vec<u8>,
    is_after_cr: bool,
}

/// The effect of a byte on a line.
enum Step {
    Within,
    /// The line without its end.
    Ended(Vec<u8>),
    BareLf,
}

impl Line {
    fn take(&mut self, byte: u8) -> Step {
        let is_after_cr = std::mem::replace(&mut self.is_after_cr, byte == b'\r');
        match byte {
            b'\n' if is_after_cr => Step::Ended(std::mem::take(&mut self.text)),
            b'\n' => Step::BareLf,
            b'\r' => Step::Within,
            _ => {
                if self.text.len() < LINE_BYTES_MAX {
                    self.text.push(byte);
                }
                Step::Within
            }
        }
    }
}

impl Head {
    fn read(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            // hyper rejects a value that is not a number.
            self.length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            self.is_chunked = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
        }
    }

    fn body(&self) -> Place {
        match (self.is_chunked, self.length) {
            (Some(true), _) => Place::ChunkSize(Line::default()),
            // hyper rejects a body whose length it cannot determine.
            (Some(false), _) => Place::Spoiled,
            (None, 0) => Place::Head(Self::default()),
            (None, left) => Place::Body { left },
        }
    }
}

impl Place {
    /// Checks bytes that have arrived, and overwrites a bare LF in a head, a chunk size or a trailer.
    fn check(&mut self, mut bytes: &mut [u8]) {
        while let Some(first) = bytes.first_mut() {
            let taken = match self {
                Self::Spoiled => return,
                Self::Body { left } | Self::Chunk { left } => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= taken as u64;
                    taken
                }
                Self::Head(Head { line, .. }) | Self::ChunkSize(line) | Self::Trailers(line) => {
                    match line.take(*first) {
                        Step::Within => {}
                        Step::Ended(line) => self.end_line(&line),
                        Step::BareLf => {
                            *first = 0;
                            *self = Self::Spoiled;
                        }
                    }
                    1
                }
            };
            match self {
                Self::Body { left: 0 } => *self = Self::Head(Head::default()),
                Self::Chunk { left: 0 } => *self = Self::ChunkSize(Line::default()),
                _ => {}
            }
            bytes = &mut bytes[taken..];
        }
    }

    fn end_line(&mut self, line: &[u8]) {
        match self {
            Self::Head(head) if line.is_empty() && head.has_begun => *self = head.body(),
            // Empty lines before a request are skipped.
            Self::Head(_) if line.is_empty() => {}
            Self::Head(head) => {
                if head.has_begun {
                    head.read(line);
                }
                head.has_begun = true;
            }
            Self::ChunkSize(_) => match chunk_size(line) {
                Some(0) => *self = Self::Trailers(Line::default()),
                Some(size) => *self = Self::Chunk { left: size.saturating_add(2) },
                None => *self = Self::Spoiled,
            },
            Self::Trailers(_) if line.is_empty() => *self = Self::Head(Head::default()),
            Self::Trailers(_) | Self::Body { .. } | Self::Chunk { .. } | Self::Spoiled => {}
        }
    }
}

/// Parses a chunk size line such as `1f;extension`.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| matches!(byte, b';' | b' ' | b'\t')).next()?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictLines<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let known = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if matches!(read, Poll::Ready(Ok(()))) && !self.is_upgraded.load(Ordering::Relaxed) {
            self.place.check(&mut buf.filled_mut()[known..]);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictLines<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that hyper gets. Asserts that they do not depend on the pieces in which the bytes arrive.
    fn passed(bytes: &str) -> String {
        let mut whole = bytes.as_bytes().to_vec();
        Place::Head(Head::default()).check(&mut whole);
        for size in [1, 2, 7] {
            let mut pieces = bytes.as_bytes().to_vec();
            let mut place = Place::Head(Head::default());
            pieces.chunks_mut(size).for_each(|piece| place.check(piece));
            assert_eq!(pieces, whole, "in pieces of {size}");
        }
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn heads_with_bare_line_feeds_are_spoiled_and_nothing_else_is() {
        for fine in [
            "GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\na\n\nbGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3;x=y\r\n\n\n\n\r\n0\r\nt: u\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 1\r\n\r\nA\r\n0123456\n\n9\r\n0\r\n\r\n",
        ] {
            assert_eq!(passed(fine), fine);
        }
        for (bad, spoiled) in [
            ("GET / HTTP/1.1\nhost: a\r\n\r\n", "GET / HTTP/1.1\0host: a\r\n\r\n"),
            ("\nGET / HTTP/1.1\r\n\r\n", "\0GET / HTTP/1.1\r\n\r\n"),
            ("GET / HTTP/1.1\r\nhost: a\n\r\n", "GET / HTTP/1.1\r\nhost: a\0\r\n"),
            ("GET / HTTP/1.1\r\n\n", "GET / HTTP/1.1\r\n\0"),
            (
                "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na\nGET / HTTP/1.1\n\r\n",
                "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na\nGET / HTTP/1.1\0\r\n",
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n0\r\nt: u\n\r\n",
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n0\r\nt: u\0\r\n",
            ),
        ] {
            assert_eq!(passed(bad), spoiled);
        }
    }
}
