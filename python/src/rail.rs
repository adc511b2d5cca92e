//! A connection that an event loop watches itself: between a call and its answer no other thread has to be woken.
//!
//! Calls are answered in the order in which they were sent. When anything unusual happens, those that have no answer yet
//! are handed back, to be done by the store.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use switchyard_checkpoints::Error;
use switchyard_checkpoints::wire::{Failure, Wire};

use crate::live::Live;
use crate::op::{Outcome, Task};

pub(crate) struct Rail {
    wire: Wire,
    unsent: Vec<u8>,
    calls: VecDeque<Call>,
    /// Whether the loop looks after calls that are not answered in time.
    pub(crate) is_watched: bool,
    /// Whether the loop tells when there is room to send.
    is_full: bool,
    /// Whether the loop keeps turning while it waits for an answer.
    is_awake: bool,
    /// So many calls are left to the runtime yet, because calls overlapped: a loop that has several things to do is
    /// better off without this one.
    crowded: Cell<u32>,
}

/// After calls overlapped. Then one tries again whether it is alone.
const CROWDED: u32 = 200;

/// Something that was begun, and the future that waits for it.
pub(crate) struct Call {
    pub(crate) task: Task,
    pub(crate) live: Arc<Live>,
    pub(crate) future: Py<PyAny>,
    since: Instant,
}

/// What has become of calls.
#[derive(Default)]
pub(crate) struct Arrivals {
    pub(crate) done: Vec<(Py<PyAny>, Result<Outcome, Error>)>,
    /// To be done by the store.
    pub(crate) elsewhere: Vec<Call>,
    /// The rail is of no use any more.
    pub(crate) is_lost: bool,
}

/// What a rail wants to have done by its loop.
#[derive(Default)]
pub(crate) struct Wants {
    /// To be flushed: there was not room for all of it.
    pub(crate) flush: bool,
    /// That it keeps turning.
    pub(crate) awake: bool,
    /// To be looked after.
    pub(crate) watch: bool,
}

impl Call {
    pub(crate) fn new(task: Task, live: Arc<Live>, future: Py<PyAny>) -> Self {
        Self { task, live, future, since: Instant::now() }
    }
}

impl Rail {
    pub(crate) fn new(wire: Wire) -> Self {
        let (unsent, calls) = (Vec::new(), VecDeque::new());
        Self {
            wire,
            unsent,
            calls,
            is_watched: false,
            is_full: false,
            is_awake: false,
            crowded: Cell::new(0),
        }
    }

    /// Whether the next call goes this way.
    pub(crate) fn takes_a_call(&self) -> bool {
        let crowded = if self.calls.is_empty() { self.crowded.get() } else { CROWDED };
        self.crowded.set(crowded.saturating_sub(1));
        crowded == 0
    }

    pub(crate) fn fd(&self) -> i32 {
        self.wire.fd()
    }

    /// Sends it at once, as far as there is room.
    pub(crate) fn begin(&mut self, call: Call, request: &[u8]) -> Result<Wants, Failure> {
        self.calls.push_back(call);
        let sent = self.wire.send(request)?;
        self.unsent.extend_from_slice(&request[sent..]);
        let awake = self.unsent.is_empty() && self.wire.vigil().begin() && !self.is_awake;
        let wants = Wants { flush: !self.unsent.is_empty(), awake, watch: !self.is_watched };
        self.is_awake |= awake;
        self.is_watched = true;
        Ok(wants)
    }

    /// Sends what is left. Whether the loop should tell when there is room, if that has changed.
    pub(crate) fn flush(&mut self) -> Result<Option<bool>, Failure> {
        let sent = self.wire.send(&self.unsent)?;
        self.unsent.drain(..sent);
        let was_full = std::mem::replace(&mut self.is_full, !self.unsent.is_empty());
        Ok((was_full != self.is_full).then_some(self.is_full))
    }

    /// Takes what has come in.
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
            self.wire.vigil().end(true);
            if arrivals.is_lost {
                arrivals.elsewhere.extend(self.calls.drain(..));
            }
            if self.calls.is_empty() {
                return arrivals;
            }
        }
    }

    /// Whether to keep turning; ends it if not.
    pub(crate) fn stays_awake(&mut self) -> bool {
        self.is_awake = !self.calls.is_empty() && !self.wire.vigil().is_over();
        if !self.is_awake {
            self.wire.vigil().end(false);
        }
        self.is_awake
    }

    /// How long until the first call has waited for too long; none if no call waits.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let first = self.calls.front()?;
        Some(first.live.timeout.saturating_sub(first.since.elapsed()))
    }

    /// Gives up: calls that waited for too long are told so, the others go elsewhere.
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
