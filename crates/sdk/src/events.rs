//! Follows the events of a run.

use std::collections::VecDeque;

use futures::Stream;
use switchyard_api::Event;
use switchyard_client::Events;
use switchyard_runtime::Follow;

use crate::Error;

/// The events of a run, in order and each exactly once, also across lost connections and restarts of a server.
///
/// Output that handlers stream arrives as `node_chunks` events, see [`Event::chunks`]. When a node starts another
/// attempt, discard the chunks of the one before.
#[derive(Debug)]
pub struct RunEvents(Side);

#[derive(Debug)]
enum Side {
    Here { follow: Box<Follow>, ready: VecDeque<Event>, ended: bool },
    Server(Box<Events>),
}

impl RunEvents {
    pub(crate) fn here(follow: Follow) -> Self {
        Self(Side::Here { follow: Box::new(follow), ready: VecDeque::new(), ended: false })
    }

    pub(crate) fn at_server(events: Events) -> Self {
        Self(Side::Server(Box::new(events)))
    }

    /// Waits for the next event. Returns `None` after the run's end.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        let (follow, ready, ended) = match &mut self.0 {
            Side::Server(events) => return Ok(events.next().await?),
            Side::Here { follow, ready, ended } => (follow, ready, ended),
        };
        while ready.is_empty() && !*ended {
            for event in follow.next().await? {
                ready.push_back(Event::of(&event).map_err(Error::Value)?);
            }
            *ended = ready.back().is_some_and(Event::is_end);
        }
        Ok(ready.pop_front())
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
}
