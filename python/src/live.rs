//! The connections of one process.
//!
//! A sync call has a lane to itself: a connection that the calling thread waits on, so that no other thread has to be
//! woken. Lanes are kept and reused. Async calls have a connection for each event loop ([`crate::loop_connection`]).
//! Calls that neither of them can make use the store, which supports every kind of address and repeats calls whose
//! connection was lost. Nothing of this survives a fork: the child notices by its process id, and leaves the parent's
//! connections open.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_checkpoints::keys::Keyspace;
use switchyard_checkpoints::raw_connection::{Closer, Failure, RawConnection, Reply};
use switchyard_checkpoints::{Address, Checkpoints, Error, RetryingClient};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::op::{Outcome, Task};

/// Number of idle lanes that are kept.
const IDLE_LANES_MAX: usize = 64;
/// Buffer size that a lane keeps after a large request.
const ROOM_KEPT_MAX: usize = 1024 * 1024;

pub(crate) struct Live {
    pub(crate) pid: u32,
    /// Unique within this process.
    pub(crate) id: u64,
    pub(crate) timeout: Duration,
    pub(crate) address: Address,
    pub(crate) store: Checkpoints,
    /// Whether a [`RawConnection`] can reach the address, as far as is known.
    is_plain: AtomicBool,
    lanes: Mutex<Vec<ThreadConnection>>,
    connections: Mutex<Vec<Closer>>,
}

struct ThreadConnection {
    runtime: Runtime,
    store: Checkpoints,
    wire: Option<RawConnection>,
    /// The request buffer, kept between calls to reuse its memory.
    unsent: Vec<u8>,
}

impl Live {
    pub(crate) fn new(address: Address, space: Keyspace, timeout: Duration) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            pid: std::process::id(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            timeout,
            is_plain: AtomicBool::new(RawConnection::is_for(&address)),
            store: Checkpoints::new(RetryingClient::new(address.clone(), timeout), space),
            address,
            lanes: Mutex::default(),
            connections: Mutex::default(),
        }
    }

    /// Whether a [`RawConnection`] can do this task, as far as is known.
    pub(crate) fn is_for_wire(&self, task: &Task) -> bool {
        task.is_one_call() && self.is_plain.load(Ordering::Relaxed)
    }

    /// Records a permanent failure.
    pub(crate) fn note(&self, failure: Failure) {
        if failure == Failure::NotPlain {
            self.is_plain.store(false, Ordering::Relaxed);
        }
    }

    /// Adds a connection that is closed when this is dropped.
    pub(crate) fn keep(&self, connection: Closer) {
        let mut connections = self.connections.lock();
        connections.retain(|each| !each.is_gone());
        connections.push(connection);
    }

    /// Does a task on the calling thread.
    pub(crate) fn wait(&self, task: Task) -> Result<Outcome, Error> {
        let idle = self.lanes.lock().pop();
        let mut lane = match idle {
            Some(lane) => lane,
            None => self.new_lane()?,
        };
        let outcome = lane.run(task, self);
        let mut lanes = self.lanes.lock();
        if lanes.len() < IDLE_LANES_MAX {
            lanes.push(lane);
        }
        outcome
    }

    fn new_lane(&self) -> Result<ThreadConnection, Error> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| cannot_start(&error))?;
        let client = RetryingClient::new(self.address.clone(), self.timeout);
        let store = Checkpoints::new(client, self.store.space().clone());
        Ok(ThreadConnection { runtime, store, wire: None, unsent: Vec::new() })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            self.connections.lock().iter().for_each(Closer::close);
        }
    }
}

impl ThreadConnection {
    fn run(&mut self, task: Task, live: &Live) -> Result<Outcome, Error> {
        if live.is_for_wire(&task) {
            self.unsent.clear();
            self.unsent.shrink_to(ROOM_KEPT_MAX);
            task.request(self.store.space(), &mut self.unsent);
            match self.exchange(live) {
                Ok(reply) => return task.answered(reply),
                Err(Failure::Late) => return Err(live.store.late()),
                Err(failure) => live.note(failure),
            }
        }
        self.runtime.block_on(task.run(&self.store))
    }

    fn exchange(&mut self, live: &Live) -> Result<Reply, Failure> {
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => self.runtime.block_on(RawConnection::connect(&live.address))?,
        };
        let answer = wire.exchange(&self.unsent, live.timeout);
        if matches!(answer, Ok(_) | Err(Failure::Refused)) {
            self.wire = Some(wire);
        }
        answer
    }
}

/// The runtime of async calls, with one thread, for all savers of this process. It ends with the process.
pub(crate) fn runtime() -> Result<Handle, Error> {
    static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
    let mut running = RUNTIME.lock();
    if let Some((pid, handle)) = &*running
        && *pid == std::process::id()
    {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| cannot_start(&error))?;
    let handle = runtime.handle().clone();
    let driver = std::thread::Builder::new().name("switchyard".to_owned());
    driver
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .map_err(|error| cannot_start(&error))?;
    *running = Some((std::process::id(), handle.clone()));
    Ok(handle)
}

fn cannot_start(error: &std::io::Error) -> Error {
    Error::Invalid(format!("cannot start a runtime: {error}"))
}
