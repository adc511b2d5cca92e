//! A child process that can be killed, paused and started again.

use std::process::{Child, Command};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

/// A command to start a process, and the process while it runs.
pub(crate) struct Process {
    pub(crate) name: String,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    child: Option<Child>,
    paused: bool,
}

impl Process {
    pub(crate) fn start(
        name: impl Into<String>,
        command: impl Fn() -> Command + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let mut process = Self { name: name.into(), command: Box::new(command), child: None, paused: false };
        process.revive()?;
        Ok(process)
    }

    /// Starts the process if it does not run, and continues it if it is paused.
    pub(crate) fn revive(&mut self) -> anyhow::Result<()> {
        self.go_on();
        let ended = match &mut self.child {
            Some(child) => child.try_wait()?.is_some(),
            None => true,
        };
        if ended {
            let started = (self.command)().spawn();
            self.child = Some(started.with_context(|| format!("{} could not be started", self.name))?);
        }
        Ok(())
    }

    /// Kills the process with `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.paused = false;
        if let Some(mut child) = self.child.take() {
            // The process may have ended by itself meanwhile.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn pause(&mut self) {
        self.signal(Signal::STOP);
        self.paused = true;
    }

    pub(crate) fn go_on(&mut self) {
        if std::mem::take(&mut self.paused) {
            self.signal(Signal::CONT);
        }
    }

    /// Sends SIGTERM, and waits until the process has ended.
    pub(crate) fn stop(&mut self) {
        self.go_on();
        self.signal(Signal::TERM);
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    fn signal(&self, signal: Signal) {
        let pid =
            self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
