//! Connections of one process.
//!
//! Async calls share a connection, and one thread that drives it. A sync call has a lane to itself: a connection with a
//! runtime that runs on the calling thread, so that no other thread has to be woken on the way. Lanes are kept and used
//! again. Nothing of this survives a fork: the child notices by its process id, and leaves the parent's as it is.

use std::sync::Arc;

use parking_lot::Mutex;
use switchyard_checkpoints::{Checkpoints, Error};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::op::{Outcome, Task};

/// Lanes that are kept when nobody uses them.
const IDLE_LANES_MAX: usize = 64;

pub(crate) struct Live {
    pub(crate) pid: u32,
    pub(crate) store: Checkpoints,
    make: Arc<dyn Fn() -> Checkpoints + Send + Sync>,
    lanes: Mutex<Vec<Lane>>,
}

struct Lane {
    runtime: Runtime,
    store: Checkpoints,
}

impl Live {
    pub(crate) fn new(make: Arc<dyn Fn() -> Checkpoints + Send + Sync>) -> Self {
        Self { pid: std::process::id(), store: make(), make, lanes: Mutex::default() }
    }

    /// On this thread, until it is done.
    pub(crate) fn wait(&self, task: Task) -> Result<Outcome, Error> {
        let idle = self.lanes.lock().pop();
        let lane = match idle {
            Some(lane) => lane,
            None => self.new_lane()?,
        };
        let outcome = lane.runtime.block_on(task.run(&lane.store));
        let mut lanes = self.lanes.lock();
        if lanes.len() < IDLE_LANES_MAX {
            lanes.push(lane);
        }
        outcome
    }

    fn new_lane(&self) -> Result<Lane, Error> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| cannot_start(&error))?;
        Ok(Lane { runtime, store: (self.make)() })
    }
}

/// The runtime of async calls, for all savers of this process, and its one thread. They end with the process.
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
