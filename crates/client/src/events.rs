//! Follows the events of a run, across lost connections and restarts of the server.

use std::collections::VecDeque;
use std::time::Duration;

use futures::Stream;
use reqwest::{Method, Response, StatusCode};
use switchyard_api::Event;
use switchyard_core::RunId;
use tokio::time::Instant;

use crate::retry::Backoff;
use crate::sse::{Message, Reader};
use crate::{Client, Error};

/// The server sends at least a heartbeat every 15 seconds; after this much silence the client reconnects.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// How long the client tries to reconnect to a server that does not answer.
const RECONNECT_FOR: Duration = Duration::from_secs(60);

/// The events of a run, in order and each exactly once. It reconnects automatically.
#[derive(Debug)]
pub struct Events {
    client: Client,
    run: RunId,
    /// The number of the newest event that was returned.
    after: u64,
    open: Option<Open>,
    backoff: Backoff,
    /// When the client last received bytes from the server.
    heard: Instant,
    reconnect_for: Duration,
}

#[derive(Debug)]
struct Open {
    response: Response,
    reader: Reader,
    ready: VecDeque<Event>,
}

impl Client {
    /// Follows a run from after event `after` (0: from its beginning) to its end.
    pub fn follow(&self, run: RunId, after: u64) -> Events {
        Events {
            client: self.clone(),
            run,
            after,
            open: None,
            backoff: Backoff::default(),
            heard: Instant::now(),
            reconnect_for: RECONNECT_FOR,
        }
    }
}

impl Events {
    /// Sets for how long the client tries to reconnect to a server that does not answer; the default is one minute.
    pub fn reconnect_for(mut self, reconnect_for: Duration) -> Self {
        self.reconnect_for = reconnect_for;
        self
    }

    /// Waits for the next event. Returns `None` after the run's last event.
    ///
    /// Cancel-safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if self.open.is_none() && !self.connect().await? {
                return Ok(None);
            }
            let Some(open) = &mut self.open else { continue };
            if let Some(event) = open.ready.pop_front() {
                if event.seq <= self.after {
                    continue;
                }
                if event.seq != self.after + 1 {
                    let what = format!("event {} of {} follows event {}", event.seq, self.run, self.after);
                    return Err(self.client.strange(what));
                }
                self.after = event.seq;
                return Ok(Some(event));
            }
            self.read().await?;
        }
    }

    /// Converts this into a stream of events.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, Error>> {
        futures::stream::unfold(Some(self), |events| async {
            let mut events = events?;
            match events.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(events))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Reads once from the connection. If it breaks, ends or stays silent, [`Events::next`] reconnects.
    async fn read(&mut self) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let bytes = match tokio::time::timeout(SILENCE_MAX, open.response.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None) | Err(_)) | Err(_) => {
                self.open = None;
                return Ok(());
            }
        };
        open.reader.push(&bytes);
        while let Some(Message { data, .. }) = open.reader.next() {
            let event =
                serde_json::from_str(&data).map_err(|error| self.client.strange(error.to_string()))?;
            open.ready.push_back(event);
        }
        (self.backoff, self.heard) = (Backoff::default(), Instant::now());
        Ok(())
    }

    /// Connects to the server. Returns false if the run has no more events.
    async fn connect(&mut self) -> Result<bool, Error> {
        loop {
            let sent = self.ask().await;
            let error = match sent {
                Ok(response) if response.status() == StatusCode::NO_CONTENT => return Ok(false),
                Ok(response) if response.status().is_success() => {
                    let (reader, ready) = (Reader::default(), VecDeque::new());
                    self.open = Some(Open { response, reader, ready });
                    return Ok(true);
                }
                Ok(response) if response.status().is_client_error() => {
                    return Err(self.client.refusal(response).await);
                }
                Ok(response) => self.client.refusal(response).await,
                Err(error) => error,
            };
            if self.heard.elapsed() > self.reconnect_for {
                return Err(error);
            }
            tokio::time::sleep(self.backoff.pause()).await;
        }
    }

    async fn ask(&self) -> Result<Response, Error> {
        let path = ["v1", "runs", &self.run.to_string(), "events"];
        let request = self
            .client
            .request(Method::GET, &path)
            .header("accept", "text/event-stream")
            .header("last-event-id", self.after.to_string());
        match tokio::time::timeout(SILENCE_MAX, request.send()).await {
            Ok(sent) => sent.map_err(|error| self.client.unreachable(error)),
            Err(_) => Err(self.client.strange("it takes connections and says nothing".to_owned())),
        }
    }
}
