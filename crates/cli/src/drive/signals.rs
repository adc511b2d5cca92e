//! Ctrl-C, and what a supervisor sends.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::errors::{Exit, Failure};

/// Makes a write beyond the limit of a file's size an error, which the store reports, instead of the end of the process.
/// Programs of `command` nodes start with the default again. Has to be called in the runtime.
pub(crate) fn survive_file_size_limit() {
    // Listening replaces the default for good; nothing has to be heard.
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
    /// From here on they no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let cannot = |error| Failure::store(format!("cannot listen for signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
        })
    }

    /// The result of this future; dropped on Ctrl-C or SIGTERM.
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
