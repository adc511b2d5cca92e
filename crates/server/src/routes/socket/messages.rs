//! The messages of the WebSocket protocol.

use axum::extract::ws::Message;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::RunId;
use switchyard_core::run::Event;

use crate::problem::Problem;
use crate::wire;

/// A message from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Subscribe {
        run: RunId,
        /// Only events after this one.
        after: u64,
    },
    Unsubscribe {
        run: RunId,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    subscribe: Option<String>,
    unsubscribe: Option<String>,
    after: Option<u64>,
}

impl Ask {
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        let wanted: Wanted = serde_json::from_str(text).map_err(|error| {
            Problem::unprocessable("invalid_message", format!("the message: {error}")).hint(USAGE)
        })?;
        match wanted {
            Wanted { subscribe: Some(run), unsubscribe: None, after } => {
                Ok(Self::Subscribe { run: run.parse()?, after: after.unwrap_or(0) })
            }
            Wanted { subscribe: None, unsubscribe: Some(run), after: None } => {
                Ok(Self::Unsubscribe { run: run.parse()? })
            }
            _ => Err(Problem::unprocessable(
                "invalid_message",
                "the message asks for nothing, or for two things",
            )
            .hint(USAGE)),
        }
    }
}

const USAGE: &str = "send {\"subscribe\": \"run_…\", \"after\": 0} or {\"unsubscribe\": \"run_…\"}";

/// A message from the server.
#[derive(Debug)]
pub(super) enum Answer {
    Subscribed {
        run: RunId,
        after: u64,
    },
    Event(Event),
    /// The run has no event after `last`, and the subscription has ended.
    Ended {
        run: RunId,
        last: u64,
    },
    /// The server sends no more events of this run.
    Unsubscribed(RunId),
    Error(Option<RunId>, Problem),
}

impl Answer {
    pub(super) fn write(self) -> Result<Message, Problem> {
        Ok(Message::text(self.document()?.to_string()))
    }

    fn document(self) -> Result<Value, Problem> {
        Ok(match self {
            Self::Subscribed { run, after } => json!({ "subscribed": run, "after": after }),
            Self::Event(event) => json!({ "event": wire::event(&event)? }),
            Self::Ended { run, last } => json!({ "ended": run, "last": last }),
            Self::Unsubscribed(run) => json!({ "unsubscribed": run }),
            Self::Error(None, problem) => json!({ "error": problem.document() }),
            Self::Error(Some(run), problem) => json!({ "error": problem.document(), "run_id": run }),
        })
    }
}

pub(super) fn not_text() -> Problem {
    Problem::unprocessable("invalid_message", "the message is not text").hint(USAGE)
}

pub(super) fn not_subscribed(run: RunId) -> Problem {
    Problem::conflict("not_subscribed", format!("{run} is not followed on this socket"))
}

pub(super) fn already_subscribed(run: RunId) -> Problem {
    Problem::conflict("already_subscribed", format!("{run} is followed on this socket already"))
}

pub(super) fn too_many(most: usize) -> Problem {
    let detail = format!("{most} runs are followed on this socket, and there may be no more");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_subscriptions", detail)
        .hint("unsubscribe from some, or open another socket")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_ask_for_one_thing() {
        let run = "run_00000000000000000000000000";
        let id: RunId = run.parse().unwrap();
        let read = |text: &str| Ask::read(text).ok();
        let subscribe = format!(r#"{{"subscribe": "{run}", "after": 7}}"#);
        assert_eq!(read(&subscribe), Some(Ask::Subscribe { run: id, after: 7 }));
        assert_eq!(read(&format!(r#"{{"subscribe": "{run}"}}"#)), Some(Ask::Subscribe { run: id, after: 0 }));
        assert_eq!(read(&format!(r#"{{"unsubscribe": "{run}"}}"#)), Some(Ask::Unsubscribe { run: id }));
        for nonsense in [
            "",
            "{}",
            "[]",
            r#"{"subscribe": "nope"}"#,
            r#"{"subscribe": 5}"#,
            r#"{"subscribe": "run_00000000000000000000000000", "after": -1}"#,
            r#"{"subscribe": "run_00000000000000000000000000", "unsubscribe": "run_00000000000000000000000000"}"#,
            r#"{"unsubscribe": "run_00000000000000000000000000", "after": 1}"#,
            r#"{"subscribe": "run_00000000000000000000000000", "nope": 1}"#,
        ] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
