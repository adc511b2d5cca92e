//! `/v1/events`: a WebSocket on which a client follows many runs. It gets each of their events once.
//!
//! - `messages`: the messages of the protocol
//! - `subscriptions`: the runs that a socket follows, and which of them may have new events
//!
//! One task serves a socket. It reads a page of one run, writes it, and only then reads the next page. If the client
//! does not read, the task waits and holds that one page.

mod messages;
mod subscriptions;

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::Response;
use futures::{FutureExt, SinkExt};
use switchyard_runtime::EngineError;
use tokio::time::{MissedTickBehavior, interval};

use crate::ServerState;
use crate::api::Api;
use crate::problem::Problem;
use messages::{Answer, Ask};
use subscriptions::{Page, Subscriptions};

/// The subprotocol that the server selects. A client may also offer `bearer.…`, which carries its key.
const PROTOCOL: &str = "switchyard.v1";

/// How often the server pings an idle socket. It drops a client that leaves `UNANSWERED_MAX` pings unanswered.
const PING_EVERY: Duration = Duration::from_secs(15);
const UNANSWERED_MAX: u32 = 3;

/// How long a write may block before the server drops the client.
const WRITE_MAX: Duration = Duration::from_secs(60);

/// The longest message that a client may send.
const ASK_BYTES_MAX: usize = 16 * 1024;

pub(super) fn register(api: &mut Api) {
    let follow = api
        .operation("runs", "followRuns", "A WebSocket on which many runs are followed")
        .description(
            "Messages are JSON text. The client sends `{\"subscribe\": \"run_…\", \"after\": 0}` and \
             `{\"unsubscribe\": \"run_…\"}`; the server sends `{\"subscribed\": …}`, `{\"event\": {…}}` as \
             `followRun` does, `{\"ended\": …}` after the last event of a run, `{\"unsubscribed\": …}` and \
             `{\"error\": problem}`. Browsers send their key as the subprotocol `bearer.swk_…` beside \
             `switchyard.v1`. `docs/guide/streams.md` has the details.",
        )
        .empty_answer(101, "The connection is a WebSocket now")
        .problems([426]);
    api.get("/v1/events", follow, upgrade);
}

async fn upgrade(
    State(state): State<ServerState>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|rejection| {
        Problem::new(StatusCode::UPGRADE_REQUIRED, "not_a_websocket", rejection.body_text())
            .hint("this address is for WebSocket clients; GET /v1/runs/{run}/events follows one run without")
    })?;
    let tracker = state.connections.clone();
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(ASK_BYTES_MAX).max_frame_size(ASK_BYTES_MAX);
    Ok(upgrade.on_upgrade(move |socket| tracker.track_future(Conversation::new(state, socket).hold())))
}

struct Conversation {
    state: ServerState,
    socket: WebSocket,
    followed: Subscriptions,
    unanswered: u32,
}

/// Why a conversation ends.
enum End {
    /// The client has disconnected or does not respond.
    Gone,
    Close(u16, &'static str),
}

impl From<axum::Error> for End {
    fn from(_: axum::Error) -> Self {
        Self::Gone
    }
}

impl Conversation {
    fn new(state: ServerState, socket: WebSocket) -> Self {
        let followed = Subscriptions::new(state.engine.clone());
        Self { state, socket, followed, unanswered: 0 }
    }

    async fn hold(mut self) {
        let end = self.talk().await;
        if let Err(End::Close(code, reason)) = end {
            let frame = CloseFrame { code, reason: reason.into() };
            let _ = tokio::time::timeout(WRITE_MAX, self.socket.send(Message::Close(Some(frame)))).await;
        }
    }

    async fn talk(&mut self) -> Result<(), End> {
        let stop = self.state.stop.clone();
        let mut pings = interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        loop {
            if stop.is_cancelled() {
                return Err(End::Close(close_code::RESTART, "the server stops; reconnect with `after`"));
            }
            // The client's messages are handled before more events are sent: it may unsubscribe.
            while let Some(said) = self.socket.recv().now_or_never() {
                self.hear(said).await?;
            }
            if let Some(page) = self.followed.next_page().await {
                self.deliver(page).await?;
                continue;
            }
            tokio::select! {
                said = self.socket.recv() => self.hear(said).await?,
                () = self.followed.news() => {}
                _ = pings.tick() => self.ping().await?,
                () = stop.cancelled() => {}
            }
        }
    }

    async fn ping(&mut self) -> Result<(), End> {
        if self.unanswered == UNANSWERED_MAX {
            return Err(End::Gone);
        }
        self.unanswered += 1;
        self.write([Message::Ping(axum::body::Bytes::new())]).await
    }

    async fn hear(&mut self, said: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        let Some(said) = said else { return Err(End::Gone) };
        self.unanswered = 0;
        let answer = match said {
            Ok(Message::Text(text)) => self.obey(&text).await,
            Ok(Message::Binary(_)) => Answer::Error(None, messages::not_text()),
            // The library answers pings and close frames itself.
            Ok(Message::Ping(_) | Message::Pong(_)) => return Ok(()),
            Ok(Message::Close(_)) => return Err(End::Gone),
            // The message is too long or the frame is invalid: later frames cannot be parsed either.
            Err(_) => return Err(End::Close(close_code::POLICY, "a message is too long or not valid")),
        };
        self.say([answer]).await
    }

    async fn obey(&mut self, text: &str) -> Answer {
        match Ask::read(text) {
            Err(problem) => Answer::Error(None, problem),
            Ok(Ask::Subscribe { run, after }) => match self.followed.subscribe(run, after).await {
                Ok(()) => Answer::Subscribed { run, after },
                Err(problem) => Answer::Error(Some(run), problem),
            },
            Ok(Ask::Unsubscribe { run }) => match self.followed.unsubscribe(run) {
                true => Answer::Unsubscribed(run),
                false => Answer::Error(Some(run), messages::not_subscribed(run)),
            },
        }
    }

    async fn deliver(&mut self, page: Result<Page, EngineError>) -> Result<(), End> {
        match page {
            Ok(page) => {
                let ended = page.ended.then_some(Answer::Ended { run: page.run, last: page.last });
                self.say(page.events.into_iter().map(Answer::Event).chain(ended)).await
            }
            Err(error) => {
                tracing::warn!(%error, "a socket was broken off");
                Err(End::Close(close_code::AGAIN, "the store does not answer; reconnect with `after`"))
            }
        }
    }

    async fn say(&mut self, answers: impl IntoIterator<Item = Answer>) -> Result<(), End> {
        let written: Result<Vec<Message>, _> = answers.into_iter().map(Answer::write).collect();
        match written {
            Ok(messages) => self.write(messages).await,
            Err(_) => Err(End::Close(close_code::ERROR, "an event cannot be written as JSON")),
        }
    }

    /// Writes all messages and then flushes once. Returns [`End::Gone`] if that takes longer than `WRITE_MAX`.
    async fn write(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<(), End> {
        let writing = async {
            for message in messages {
                self.socket.feed(message).await?;
            }
            self.socket.flush().await
        };
        match tokio::time::timeout(WRITE_MAX, writing).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(End::Gone),
        }
    }
}
