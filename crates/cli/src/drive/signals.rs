//! Ctrl-C, and SIGTERM from a supervisor.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::errors::{Exit, Failure};

/// Makes a write beyond the file size limit an error, which the store reports, instead of killing the process.
/// Programs of `command` nodes start with the default again. Must be called within the runtime.
pub(crate) fn survive_file_size_limit() {
    // Installing a handler replaces the default permanently; the signal itself is ignored.
    if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "a write beyond the limit of a file's size will end this process");
    }
}

#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Installs the handlers: from now on, SIGINT and SIGTERM no longer kill the process.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let cannot = |error| Failure::store(format!("cannot listen for signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
        })
    }

    /// Awaits `work`, and drops it on Ctrl-C or SIGTERM.
    pub(crate) async fn unless_sent<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            exit = self.next() => Err(Failure::silent(exit)),
        }
    }

    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}
