//! Logs of steps, stored as events of the run.

use serde::Deserialize;
use switchyard_api::{LogPage, LoggedLines};
use switchyard_core::in_flight::ClaimStatus;
use switchyard_core::run::{ClaimRef, Event, EventKind, LogBatch, LogLevel, LogLine, Progress};
use switchyard_core::{RunId, Timestamp};

use super::{Engine, EngineError, History};
use crate::Payloads;
use crate::handlers::cut_log_line;
use crate::payloads::PayloadError;

/// How many events are read at once.
const PAGE: usize = 1_000;

/// A line as a worker sends it: text, or an object.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "a line is text, or an object with `message` and perhaps `level` (`debug`, `info`, `warn`, `error`) and `at`"
)]
pub enum SentLine {
    Text(String),
    Line(SentFields),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentFields {
    pub message: String,
    #[serde(default)]
    pub level: Option<LogLevel>,
    /// The time at which the line was logged; if `None`, the time at which it is received.
    #[serde(default, with = "switchyard_core::time::rfc3339::option")]
    pub at: Option<Timestamp>,
}

impl SentLine {
    /// The line as it is stored.
    pub fn received(self, now: Timestamp) -> LogLine {
        let SentFields { message, level, at } = match self {
            Self::Text(message) => SentFields { message, level: None, at: None },
            Self::Line(fields) => fields,
        };
        LogLine { at: at.unwrap_or(now), level, message: cut_log_line(&message) }
    }
}

/// Which lines to read.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    pub node: Option<String>,
    pub attempt: Option<u32>,
}

impl LogFilter {
    fn takes(&self, node: &str, attempt: u32) -> bool {
        self.node.as_deref().is_none_or(|wanted| wanted == node)
            && self.attempt.is_none_or(|wanted| wanted == attempt)
    }
}

/// Stores lines durably, and returns the progress report with their count.
pub(crate) async fn keep_lines(payloads: &Payloads, lines: &[LogLine]) -> Result<Progress, PayloadError> {
    let bytes = lines.iter().map(|line| line.message.len()).sum::<usize>();
    let text = serde_json::value::to_raw_value(lines)?;
    Ok(Progress::Logs(LogBatch {
        lines: payloads.keep_text(text).await?,
        count: u32::try_from(lines.len()).unwrap_or(u32::MAX),
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
    }))
}

impl Engine {
    /// Stores log lines of the holder of a claim. Returns the status of the claim, as [`Engine::progress`] does.
    /// Lines beyond the limits of an attempt are dropped.
    pub async fn log(&self, claim: &ClaimRef, lines: Vec<SentLine>) -> Result<ClaimStatus, EngineError> {
        let now = self.clock.now();
        let lines: Vec<LogLine> = lines.into_iter().map(|line| line.received(now)).collect();
        let progress = keep_lines(self.history().payloads(), &lines).await?;
        self.progress(claim, progress).await
    }
}

impl History {
    /// The lines that steps of a run logged after event `after`: whole batches, until there are `lines_max` lines.
    pub async fn logs(
        &self,
        run: RunId,
        after: u64,
        filter: &LogFilter,
        lines_max: usize,
    ) -> Result<LogPage, EngineError> {
        let record = self.run(run).await?;
        let (mut logs, mut last, mut lines) = (Vec::new(), after, 0);
        loop {
            let events = self.events_page(run, last, PAGE).await?;
            let Some(newest) = events.last().map(|event| event.seq) else {
                let ended = record.status.is_terminal() && last >= record.last_seq;
                return Ok(LogPage { logs, next: None, last, ended });
            };
            for event in &events {
                last = event.seq;
                if let Some(logged) = self.logged(event, filter).await? {
                    lines += logged.lines.len();
                    logs.push(logged);
                }
                if lines >= lines_max && last < newest.max(record.last_seq) {
                    return Ok(LogPage { logs, next: Some(last), last, ended: false });
                }
            }
        }
    }

    /// The lines of an event, if it is a log event that the filter matches.
    pub async fn logged(
        &self,
        event: &Event,
        filter: &LogFilter,
    ) -> Result<Option<LoggedLines>, EngineError> {
        let EventKind::NodeLogged { node, attempt, lines, truncated, .. } = &event.kind else {
            return Ok(None);
        };
        if !filter.takes(node, *attempt) {
            return Ok(None);
        }
        let mut logged = LoggedLines {
            seq: event.seq,
            run_id: event.run,
            node: node.clone(),
            attempt: *attempt,
            lines: Vec::new(),
            truncated: *truncated,
            missing: None,
        };
        let loaded = self.payloads().load_text(lines).await;
        match loaded.and_then(|text| Ok(serde_json::from_str(text.get())?)) {
            Ok(lines) => logged.lines = lines,
            Err(error) if error.is_loss() => logged.missing = Some(error.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(Some(logged))
    }
}
