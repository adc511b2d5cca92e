//! Log lines of handlers and programs, batched while the store is busy, so that many lines share an event.
//!
//! Logging never fails and never delays the work: lines that cannot be stored are dropped.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_core::run::{LOG_BYTES_MAX, LOG_LINES_MAX, LogLevel, LogLine};
use switchyard_store::Clock;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::claim::{ClaimError, HeldClaim};
use crate::secrets::Revealed;

/// The longest line. The rest of a longer one is cut off.
pub const LOG_LINE_BYTES_MAX: usize = 4 * 1024;

/// The most lines and bytes of one event.
const BATCH_LINES_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 32 * 1024;

/// The shortest time between two events, so that a history stays short.
const PACE: Duration = Duration::from_millis(100);

/// How long the end of an attempt waits until its last lines are stored.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The log of one claim. Its task starts at the first line, because most handlers log none.
pub struct LogStream {
    claim: Arc<dyn HeldClaim>,
    clock: Arc<dyn Clock>,
    buffer: Arc<Buffer>,
    /// The sending task, which is aborted on drop.
    sending: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl std::fmt::Debug for LogStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogStream")
    }
}

#[derive(Default)]
struct Buffer {
    waiting: Mutex<Waiting>,
    more: Notify,
    end: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<LogLine>,
    /// The number of all lines so far.
    lines_total: usize,
    bytes_total: usize,
    /// No more lines are accepted: the claim is lost, or the call has ended.
    closed: bool,
}

impl LogStream {
    pub fn new(claim: Arc<dyn HeldClaim>, clock: Arc<dyn Clock>) -> Self {
        Self { claim, clock, buffer: Arc::default(), sending: Mutex::default() }
    }

    /// Adds a message, line by line.
    pub fn push(&self, level: Option<LogLevel>, message: &str) {
        let at = self.clock.now();
        let lines = message.lines().map(|line| LogLine { at, level, message: cut(line) });
        if self.buffer.add(lines) {
            let mut sending = self.sending.lock();
            if sending.is_none() {
                let sender = tokio::spawn(send(self.buffer.clone(), self.claim.clone()));
                *sending = Some(AbortOnDropHandle::new(sender));
            }
            self.buffer.more.notify_one();
        }
    }

    /// Ends the log. Returns when its lines are stored, or when storing failed or took too long.
    pub async fn end(&self) {
        self.buffer.end.cancel();
        let sending = self.sending.lock().take();
        if let Some(sending) = sending {
            // Neither a panic nor a slow store may lose the result.
            let _ = tokio::time::timeout(FLUSH_MAX, sending).await;
        }
        self.buffer.waiting.lock().closed = true;
    }
}

impl Buffer {
    /// Adds lines; returns whether it added any. The store drops lines beyond its limits and marks that, so one line
    /// more than the limit has to reach it, and not many.
    fn add(&self, lines: impl Iterator<Item = LogLine>) -> bool {
        let mut waiting = self.waiting.lock();
        let before = waiting.lines.len();
        for line in lines {
            let beyond =
                waiting.lines_total > LOG_LINES_MAX as usize || waiting.bytes_total > LOG_BYTES_MAX as usize;
            if waiting.closed || beyond {
                break;
            }
            waiting.lines_total += 1;
            waiting.bytes_total += line.message.len();
            waiting.lines.push(line);
        }
        waiting.lines.len() > before
    }

    fn take(&self) -> Vec<LogLine> {
        let mut waiting = self.waiting.lock();
        let (mut count, mut bytes) = (0, 0);
        for line in waiting.lines.iter().take(BATCH_LINES_MAX) {
            bytes += line.message.len();
            if count > 0 && bytes > BATCH_BYTES_MAX {
                break;
            }
            count += 1;
        }
        waiting.lines.drain(..count).collect()
    }

    fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        waiting.lines.clear();
    }
}

async fn send(buffer: Arc<Buffer>, claim: Arc<dyn HeldClaim>) {
    loop {
        let batch = buffer.take();
        if batch.is_empty() {
            if buffer.end.is_cancelled() {
                return;
            }
            tokio::select! {
                () = buffer.more.notified() => {}
                () = buffer.end.cancelled() => {}
            }
            continue;
        }
        match claim.logs(batch).await {
            Ok(()) => {}
            Err(ClaimError::Lost) => return buffer.close(),
            Err(error) => {
                tracing::warn!(%error, "logged lines were not kept");
                return buffer.close();
            }
        }
        let _ = tokio::time::timeout(PACE, buffer.end.cancelled()).await;
    }
}

/// A line cut to the longest length.
pub(crate) fn cut(line: &str) -> String {
    let end = line.floor_char_boundary(LOG_LINE_BYTES_MAX);
    if end < line.len() { format!("{}…", &line[..end]) } else { line.to_owned() }
}

/// Splits the output of a program into lines without secrets. A line that is too long is split.
#[derive(Debug)]
pub(crate) struct ByteLines<'s> {
    open: Vec<u8>,
    secrets: &'s Revealed,
}

impl<'s> ByteLines<'s> {
    pub(crate) fn new(secrets: &'s Revealed) -> Self {
        Self { open: Vec::new(), secrets }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], log: &LogStream) {
        self.open.extend_from_slice(bytes);
        self.open = self.secrets.redact_bytes(std::mem::take(&mut self.open));
        // The end may be the beginning of a secret: it is held back until more bytes arrive.
        let mut settled = self.open.len().saturating_sub(self.secrets.longest());
        while let Some(end) = self.open[..settled].iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.open.drain(..=end).collect();
            settled -= line.len();
            write_line(&line, log);
        }
        if settled >= LOG_LINE_BYTES_MAX {
            let line: Vec<u8> = self.open.drain(..settled).collect();
            write_line(&line, log);
        }
    }

    /// Logs the bytes that were held back, and those after the last line break.
    pub(crate) fn finish(&mut self, log: &LogStream) {
        let open = self.secrets.redact_bytes(std::mem::take(&mut self.open));
        for line in open.split_inclusive(|byte| *byte == b'\n') {
            write_line(line, log);
        }
    }
}

fn write_line(line: &[u8], log: &LogStream) {
    log.push(None, String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use async_trait::async_trait;
    use serde_json::Value;
    use switchyard_core::Timestamp;
    use switchyard_store::ManualClock;

    use super::super::claim::Beat;
    use super::*;
    use crate::Secrets;

    /// A claim that collects its log lines, or fails as lost.
    #[derive(Default)]
    struct Kept {
        lines: Mutex<Vec<LogLine>>,
        lost: bool,
    }

    #[async_trait]
    impl HeldClaim for Kept {
        async fn checkpoint(&self, _: &Value) -> Result<(), ClaimError> {
            Ok(())
        }

        async fn chunks(&self, _: Vec<Value>) -> Result<(), ClaimError> {
            Ok(())
        }

        async fn logs(&self, lines: Vec<LogLine>) -> Result<(), ClaimError> {
            if self.lost {
                return Err(ClaimError::Lost);
            }
            self.lines.lock().extend(lines);
            Ok(())
        }

        async fn heartbeat(&self) -> Result<Beat, ClaimError> {
            Ok(Beat::GoOn)
        }
    }

    fn stream(kept: &Arc<Kept>) -> LogStream {
        let clock = ManualClock::starting_at(Timestamp::from_millis(1_000));
        LogStream::new(kept.clone(), Arc::new(clock))
    }

    fn messages(kept: &Kept) -> Vec<String> {
        kept.lines.lock().iter().map(|line| line.message.clone()).collect()
    }

    #[tokio::test]
    async fn every_line_that_was_logged_is_kept_at_the_end() {
        let kept = Arc::new(Kept::default());
        let log = stream(&kept);
        log.push(Some(LogLevel::Warn), "one\ntwo");
        for n in 3..=700 {
            log.push(None, &n.to_string());
        }
        log.end().await;
        let expected: Vec<String> =
            ["one", "two"].map(str::to_owned).into_iter().chain((3..=700).map(|n| n.to_string())).collect();
        assert_eq!(messages(&kept), expected);
        assert_eq!(kept.lines.lock()[1].level, Some(LogLevel::Warn));
        log.push(None, "after the end");
        assert_eq!(messages(&kept).len(), 700);
    }

    #[tokio::test]
    async fn a_flood_is_cut_off_one_line_beyond_the_bound() {
        let kept = Arc::new(Kept::default());
        let log = stream(&kept);
        for _ in 0..LOG_LINES_MAX + 500 {
            log.push(None, "x");
        }
        log.end().await;
        assert_eq!(messages(&kept).len(), LOG_LINES_MAX as usize + 1);
    }

    #[tokio::test]
    async fn a_lost_claim_does_not_hold_up_the_work() {
        let kept = Arc::new(Kept { lost: true, ..Kept::default() });
        let log = stream(&kept);
        log.push(None, "x");
        log.end().await;
        assert!(messages(&kept).is_empty());
    }

    #[tokio::test]
    async fn bytes_become_lines() {
        let kept = Arc::new(Kept::default());
        let log = stream(&kept);
        let none = Revealed::NONE;
        let mut lines = ByteLines::new(&none);
        for part in [&b"on"[..], b"e\r\ntwo\nth\xff", b"ree"] {
            lines.push(part, &log);
        }
        lines.push(&[b'y'; LOG_LINE_BYTES_MAX], &log);
        lines.push(b"end", &log);
        lines.finish(&log);
        log.end().await;
        let seen = messages(&kept);
        assert_eq!(seen[..2], ["one", "two"]);
        assert!(seen[2].starts_with("th\u{fffd}reeyyy") && seen[2].ends_with('…'), "{}", seen[2]);
        assert_eq!(seen[3], "end");
    }

    #[tokio::test]
    async fn a_secret_is_taken_out_also_where_reads_and_lines_cut_it() {
        let values = BTreeMap::from([("KEY".to_owned(), "line-one\nline-two".to_owned())]);
        let secrets = Secrets { dir: None, values };
        let revealed = Revealed::look_up(&secrets, &["KEY".to_owned()]).await.unwrap();
        let kept = Arc::new(Kept::default());
        let log = stream(&kept);
        let mut lines = ByteLines::new(&revealed);
        for part in [&b"a line-o"[..], b"ne\nline", b"-two b\nend\nlast"] {
            lines.push(part, &log);
        }
        lines.finish(&log);
        log.end().await;
        assert_eq!(messages(&kept), ["a [secret KEY] b", "end", "last"]);
    }
}
