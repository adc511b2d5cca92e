//! Finds the processes of an attempt in `/proc`, even if they left its group, session or parent.
//!
//! A process belongs to an attempt if one of these is true, each of which only the attempt can have caused: its
//! parent belongs to the attempt; it is in the session or process group of a process that does; its environment has
//! the attempt's random token; or this process adopted it as an orphan, and no other attempt is old enough to have
//! started it.

use std::collections::HashSet;
use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, getpid};

/// The variable that marks a program and everything that inherits its environment.
pub(super) const TOKEN: &str = "SWITCHYARD_PROCESS_TOKEN";

/// How often the process table is scanned for processes that were started while others were killed.
const PASSES_MAX: usize = 100;
/// How long to wait before looking again at a process that is executing `exec`.
const EXEC_WAIT: Duration = Duration::from_millis(1);
/// How long a killed orphan may take to end before it is left to a later attempt to reap.
const REAP_WAIT: Duration = Duration::from_millis(100);
const REAP_EVERY: Duration = Duration::from_millis(1);

/// The flag of kernel threads, which have no environment.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Programs that this process started and that are still in the process table. Global, because parents and orphans
/// belong to the whole process.
static STARTED: Mutex<Vec<Started>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, Debug)]
struct Started {
    pid: i32,
    /// The start time in clock ticks since boot.
    at: u64,
    /// Whether the attempt is still running.
    is_live: bool,
}

/// A process as `/proc` shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    /// The start time in clock ticks since boot. Together with the pid it identifies a process uniquely.
    at: u64,
    is_zombie: bool,
    /// The environment cannot be read: the process is executing `exec`, or the kernel hides it from this user.
    is_in_exec: bool,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `pid (name) state parent group session …`; the name may hold anything, parentheses included.
    fn parse(stat: &str) -> Option<Self> {
        let (head, tail) = (stat.split_once(" (")?.0, stat.rsplit_once(") ")?.1);
        let fields: Vec<&str> = tail.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse().ok();
        let is_zombie = matches!(*fields.first()?, "Z" | "X");
        let is_of_the_kernel = fields.get(6)?.parse::<u32>().ok()? & KERNEL_THREAD != 0;
        let end_of_its_environment = fields.get(48).copied().unwrap_or_default();
        Some(Self {
            pid: head.parse().ok()?,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            at: fields.get(19)?.parse().ok()?,
            is_zombie,
            is_in_exec: end_of_its_environment == "0" && !is_zombie && !is_of_the_kernel,
        })
    }

    fn is(&self, other: &Self) -> bool {
        (self.pid, self.at) == (other.pid, other.at)
    }

    fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(Self::read).collect()
    }

    /// Whether the environment will become readable. Environments of other users never do.
    fn will_be_readable(&self) -> bool {
        self.is_in_exec && fs::File::open(format!("/proc/{}/environ", self.pid)).is_ok()
    }

    fn has(&self, token: &[u8]) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == token)
    }

    fn kill(&self) {
        // The handle refers to this very process, even if its pid is reused meanwhile.
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Self::read(self.pid).is_some_and(|now| now.at == self.at) {
            let _ = rustix::process::pidfd_send_signal(&handle, Signal::KILL);
        }
    }

    fn reap(&self) {
        let _ = rustix::process::waitpid(Pid::from_raw(self.pid), WaitOptions::NOHANG);
    }
}

/// All processes that one program started.
#[derive(Debug)]
pub(super) struct Family {
    root: Started,
    /// `NAME=value`.
    token: Vec<u8>,
    adopts_orphans: bool,
}

impl Family {
    /// Starts a program and records it under one lock: a pass of another attempt must not take it for an orphan.
    pub(super) fn start<C, E>(
        token: &str,
        adopts_orphans: bool,
        start: impl FnOnce() -> Result<C, E>,
        pid: impl FnOnce(&C) -> Option<i32>,
    ) -> Result<(C, Option<Self>), E> {
        let mut started = STARTED.lock();
        let child = start()?;
        let root = pid(&child).and_then(Process::read).map(|process| Started {
            pid: process.pid,
            at: process.at,
            is_live: true,
        });
        started.extend(root);
        let token = format!("{TOKEN}={token}").into_bytes();
        Ok((child, root.map(|root| Self { root, token, adopts_orphans })))
    }

    /// Kills all remaining members, and reaps adopted ones.
    pub(super) fn kill(&self) {
        let mut killed: Vec<Process> = Vec::new();
        for _ in 0..PASSES_MAX {
            let all = Process::all();
            let members = self.members(&all);
            let found: Vec<Process> =
                members.into_iter().filter(|member| !killed.iter().any(|it| it.is(member))).collect();
            if found.is_empty() {
                if !all.iter().any(|process| self.can_have_started(process) && process.will_be_readable()) {
                    break;
                }
                std::thread::sleep(EXEC_WAIT);
            }
            found.iter().for_each(Process::kill);
            killed.extend(found);
        }
        if self.adopts_orphans {
            reap(&killed);
        }
    }

    /// The living members: those recognised by themselves, and those recognised through other members.
    fn members(&self, all: &[Process]) -> Vec<Process> {
        let mut kin = Kin { groups: HashSet::from([self.root.pid]), ..Kin::default() };
        let candidates = all.iter().copied().filter(|process| self.can_have_started(process));
        let (mut found, mut others): (Vec<Process>, Vec<Process>) =
            candidates.partition(|process| self.is_marked(process) || self.is_orphan(process));
        let mut members = Vec::new();
        loop {
            found.iter().for_each(|process| kin.add(process));
            members.append(&mut found);
            (found, others) = others.into_iter().partition(|process| kin.includes(process));
            if found.is_empty() {
                break;
            }
        }
        members.retain(|member| !member.is_zombie);
        members
    }

    fn can_have_started(&self, process: &Process) -> bool {
        process.at >= self.root.at && process.pid != own_pid()
    }

    fn is_marked(&self, process: &Process) -> bool {
        (process.pid == self.root.pid && process.at == self.root.at) || process.has(&self.token)
    }

    /// Whether this process adopted `process`, and no other attempt can have started it.
    fn is_orphan(&self, process: &Process) -> bool {
        if !self.adopts_orphans || !is_adopted(process) {
            return false;
        }
        STARTED.lock().iter().all(|known| {
            let is_it = (known.pid, known.at) == (process.pid, process.at);
            let is_another = (known.pid, known.at) != (self.root.pid, self.root.at);
            let can_have_started_it = known.is_live && known.at <= process.at;
            !(is_it || is_another && can_have_started_it)
        })
    }
}

/// The pids, groups and sessions of known members, by which further members are recognised.
#[derive(Debug, Default)]
struct Kin {
    pids: HashSet<i32>,
    groups: HashSet<i32>,
    sessions: HashSet<i32>,
}

impl Kin {
    /// Adds a member. This process's own group and session are ignored, because other processes share them.
    fn add(&mut self, process: &Process) {
        self.pids.insert(process.pid);
        self.groups.extend((process.group != own_group()).then_some(process.group));
        self.sessions.extend((process.session != own_session()).then_some(process.session));
    }

    fn includes(&self, process: &Process) -> bool {
        self.pids.contains(&process.parent)
            || self.groups.contains(&process.group)
            || self.sessions.contains(&process.session)
    }
}

/// Reaps adopted processes that have ended, whichever attempt they belonged to. Programs that this process started
/// itself are left out: the runtime waits for them.
fn reap(killed: &[Process]) {
    let begun = Instant::now();
    loop {
        let adopted: Vec<Process> = Process::all().into_iter().filter(is_adopted).collect();
        let started = STARTED.lock();
        let ours: HashSet<i32> = started.iter().map(|known| known.pid).collect();
        let (ended, living): (Vec<&Process>, Vec<&Process>) = adopted
            .iter()
            .filter(|process| !ours.contains(&process.pid))
            .partition(|process| process.is_zombie);
        ended.into_iter().for_each(Process::reap);
        drop(started);
        let is_dying = |process: &&Process| killed.iter().any(|it| it.is(process));
        if !living.iter().any(is_dying) || begun.elapsed() > REAP_WAIT {
            return;
        }
        std::thread::sleep(REAP_EVERY);
    }
}

/// Whether this process adopted `process`: a child outside this process's group, which ordinary children share.
fn is_adopted(process: &Process) -> bool {
    process.parent == own_pid() && process.group != own_group()
}

impl Drop for Family {
    fn drop(&mut self) {
        let mut started = STARTED.lock();
        for known in started.iter_mut().filter(|known| (known.pid, known.at) == (self.root.pid, self.root.at))
        {
            known.is_live = false;
        }
        // While the pid is in the process table, it must not be taken for that of an orphan.
        started.retain(|known| {
            known.is_live || Process::read(known.pid).is_some_and(|process| process.at == known.at)
        });
    }
}

/// Makes this process the parent of every orphaned descendant. Returns whether that succeeded.
pub(super) fn adopt_orphans() -> bool {
    static ADOPTS: OnceLock<bool> = OnceLock::new();
    *ADOPTS.get_or_init(|| rustix::process::set_child_subreaper(Some(getpid())).is_ok())
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// The process group of this process; 0 if its leader is outside this container. The same holds for the session.
fn own_group() -> i32 {
    own_process().group
}

fn own_session() -> i32 {
    own_process().session
}

/// This process. It never changes its group or session.
fn own_process() -> &'static Process {
    static OWN: OnceLock<Process> = OnceLock::new();
    OWN.get_or_init(|| Process::read(own_pid()).unwrap_or(Process { pid: own_pid(), ..Process::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_process_table_is_read_whatever_the_name_is() {
        let rest = "S 7 8 9 0 -1 4194304 77 0 0 0 0 0 0 0 20 0 1 0 77529 1 2";
        for name in ["sh", "a b", ") S 1 (", "((("] {
            let process = Process::parse(&format!("5 ({name}) {rest}")).unwrap();
            let expected =
                Process { pid: 5, parent: 7, group: 8, session: 9, at: 77529, ..Process::default() };
            assert_eq!(process, expected, "{name}");
        }
        assert_eq!(Process::parse("5 (sh"), None);
        assert_eq!(Process::read(own_pid()).as_ref(), Some(own_process()));
    }
}
