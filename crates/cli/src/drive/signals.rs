//! Ctrl-C, and what a supervisor sends.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::errors::{Exit, Failure};

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

    /// What this comes to; it is given up as soon as somebody says stop.
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
