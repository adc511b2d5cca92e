//! A connection that an event loop watches itself: no other thread has to be woken between a call and its answer.
//!
//! Calls that begin in one turn of the loop are sent together, at its end: each send may have to wake the server,
//! which costs more than all else. They are answered in the order in which they were sent. After any error, the
//! unanswered calls are handed back, to be made by the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use switchyard_checkpoints::Error;
use switchyard_checkpoints::raw_connection::{Failure, RawConnection};

use crate::live::Live;
use crate::op::{Outcome, Task};

/// Buffer size that is kept after large requests.
const ROOM_KEPT_MAX: usize = 1024 * 1024;

pub(crate) struct LoopConnection {
    wire: RawConnection,
    unsent: Vec<u8>,
    calls: VecDeque<Call>,
    /// Whether the loop has a timer for calls that are not answered in time.
    pub(crate) is_watched: bool,
    /// Whether the loop is going to send: at the end of its turn, or when the socket is writable.
    is_departing: bool,
    /// Whether the loop waits for the socket to become writable.
    is_full: bool,
    /// Whether the loop keeps polling for an answer instead of sleeping.
    is_awake: bool,
}

/// A call in progress, and the future that waits for it.
pub(crate) struct Call {
    pub(crate) task: Task,
    pub(crate) live: Arc<Live>,
    pub(crate) future: Py<PyAny>,
    since: Instant,
}

/// Received answers, and the calls that got none.
#[derive(Default)]
pub(crate) struct Arrivals {
    pub(crate) done: Vec<(Py<PyAny>, Result<Outcome, Error>)>,
    /// Calls that the store has to make.
    pub(crate) elsewhere: Vec<Call>,
    /// Whether the connection is unusable.
    pub(crate) is_lost: bool,
}

/// What the loop has to schedule for a connection.
#[derive(Default)]
pub(crate) struct Wants {
    /// Call `depart` at the end of the turn.
    pub(crate) depart: bool,
    /// Start the timer for late answers.
    pub(crate) watch: bool,
}

/// The result of sending queued calls.
pub(crate) struct Departed {
    /// Whether the loop should watch for writability, if that has changed.
    pub(crate) is_full: Option<bool>,
    /// Whether the loop should start polling.
    pub(crate) awake: bool,
}

impl Call {
    pub(crate) fn new(task: Task, live: Arc<Live>, future: Py<PyAny>) -> Self {
        Self { task, live, future, since: Instant::now() }
    }
}

impl LoopConnection {
    pub(crate) fn new(wire: RawConnection) -> Self {
        let (unsent, calls) = (Vec::new(), VecDeque::new());
        let (is_watched, is_departing, is_full, is_awake) = (false, false, false, false);
        Self { wire, unsent, calls, is_watched, is_departing, is_full, is_awake }
    }

    pub(crate) fn fd(&self) -> i32 {
        self.wire.fd()
    }

    /// Queues a call for the next `depart`.
    pub(crate) fn begin(&mut self, call: Call) -> Wants {
        call.task.request(call.live.store.space(), &mut self.unsent);
        self.calls.push_back(call);
        Wants {
            depart: !std::mem::replace(&mut self.is_departing, true),
            watch: !std::mem::replace(&mut self.is_watched, true),
        }
    }

    /// Sends as many bytes as fit. Polling may pay off for a single call: with several in flight the loop has other
    /// work to do.
    pub(crate) fn depart(&mut self) -> Result<Departed, Failure> {
        let is_awake = self.calls.len() == 1 && self.wire.adaptive_wait().begin();
        let sent = self.wire.send(&self.unsent)?;
        self.unsent.drain(..sent);
        self.is_departing = !self.unsent.is_empty();
        if !self.is_departing {
            self.unsent.shrink_to(ROOM_KEPT_MAX);
        }
        let was_full = std::mem::replace(&mut self.is_full, self.is_departing);
        Ok(Departed {
            is_full: (was_full != self.is_full).then_some(self.is_full),
            awake: is_awake && !std::mem::replace(&mut self.is_awake, true),
        })
    }

    /// Reads the answers that have arrived.
    pub(crate) fn arrive(&mut self) -> Arrivals {
        let mut arrivals = Arrivals::default();
        loop {
            match self.wire.receive() {
                Ok(None) => return arrivals,
                Ok(Some(reply)) => match self.calls.pop_front() {
                    Some(call) => arrivals.done.push((call.future, call.task.answered(reply))),
                    None => arrivals.is_lost = true,
                },
                Err(Failure::Refused) => arrivals.elsewhere.extend(self.calls.pop_front()),
                Err(_) => arrivals.is_lost = true,
            }
            self.wire.adaptive_wait().end();
            if arrivals.is_lost {
                arrivals.elsewhere.extend(self.calls.drain(..));
            }
            if self.calls.is_empty() {
                return arrivals;
            }
        }
    }

    /// Whether to continue polling; stops it if not.
    pub(crate) fn stays_awake(&mut self) -> bool {
        // The server may need this processor.
        std::thread::yield_now();
        self.is_awake = !self.calls.is_empty() && !self.wire.adaptive_wait().is_over();
        self.is_awake
    }

    /// The time until the first call times out; `None` if no call waits.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let first = self.calls.front()?;
        Some(first.live.timeout.saturating_sub(first.since.elapsed()))
    }

    /// Gives up the connection: calls that timed out get an error, the others are handed back.
    pub(crate) fn give_up(mut self) -> Arrivals {
        let mut arrivals = Arrivals { is_lost: true, ..Arrivals::default() };
        for call in self.calls.drain(..) {
            if call.since.elapsed() >= call.live.timeout {
                arrivals.done.push((call.future, Err(call.live.store.late())));
            } else {
                arrivals.elsewhere.push(call);
            }
        }
        arrivals
    }
}
