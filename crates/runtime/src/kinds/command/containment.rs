//! A program with all its descendants. All of them end with the attempt, even those that left the process group, the
//! session or their parent.

use std::io;

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

use super::Commands;
#[cfg(target_os = "linux")]
use super::cgroup::Cgroup;
#[cfg(target_os = "linux")]
use super::processes::{self, Family};

/// A contained program. Dropping it kills the remaining processes, unless [`Containment::kill`] has.
#[derive(Debug)]
pub(super) struct Containment {
    group: Option<Pid>,
    #[cfg(target_os = "linux")]
    cgroup: Option<Cgroup>,
    #[cfg(target_os = "linux")]
    family: Option<Family>,
    is_killed: bool,
}

impl Containment {
    #[cfg(target_os = "linux")]
    pub(super) fn start(commands: &Commands, command: &mut Command) -> io::Result<(Child, Self)> {
        let token = format!("{:032x}", rand::random::<u128>());
        command.env(processes::TOKEN, &token);
        let adopts = commands.adopt_orphans && processes::adopt_orphans();
        let cgroup = commands.cgroups.then(Cgroup::create).flatten();
        let pid = |child: &Child| i32::try_from(child.id()?).ok();
        let (child, family) = Family::start(&token, adopts, || command.spawn(), pid)?;
        if let (Some(cgroup), Some(pid)) = (&cgroup, child.id()) {
            cgroup.add(pid);
        }
        let group = group(&child);
        Ok((child, Self { group, cgroup, family, is_killed: false }))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn start(_: &Commands, command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.spawn()?;
        let group = group(&child);
        Ok((child, Self { group, is_killed: false }))
    }

    /// Kills all remaining processes. Scans the process table, which may take some milliseconds.
    pub(super) fn kill(&mut self) {
        if std::mem::replace(&mut self.is_killed, true) {
            return;
        }
        if let Some(group) = self.group {
            // The group may have ended already.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        #[cfg(target_os = "linux")]
        {
            self.cgroup.iter().for_each(Cgroup::kill);
            // Needed in addition to a cgroup: the program may have started a process before it was moved there.
            self.family.iter().for_each(Family::kill);
        }
    }
}

fn group(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
}

impl Drop for Containment {
    fn drop(&mut self) {
        self.kill();
    }
}
