//! One cgroup for each attempt: child processes stay in it, and all of them are killed at once.
//!
//! Needs cgroup v2 and the permission to create a cgroup below that of this process. Elsewhere, the process table is
//! used alone (`processes`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long killed processes may take to end before their empty cgroup is left to a later process to remove.
const REMOVE_TRIES: u32 = 100;
const REMOVE_EVERY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Creates a cgroup; `None` where that is not possible.
    pub(super) fn create() -> Option<Self> {
        static PARENT: OnceLock<Option<PathBuf>> = OnceLock::new();
        static MADE: AtomicU64 = AtomicU64::new(0);
        let parent = PARENT.get_or_init(|| own().inspect(|own| remove_stale(own))).as_ref()?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self { path })
    }

    /// Moves a process into the cgroup. Its existing children stay where they are.
    pub(super) fn add(&self, pid: u32) {
        let _ = fs::write(self.path.join("cgroup.procs"), pid.to_string());
    }

    pub(super) fn kill(&self) {
        // Kernels before 5.14 lack `cgroup.kill`; there only the process table is used.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..REMOVE_TRIES {
            // The directory is busy until the last process in the cgroup has ended.
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(REMOVE_EVERY)
                }
                _ => return,
            }
        }
    }
}

const PREFIX: &str = "switchyard-command-";

/// Removes the empty cgroups of processes that were killed before they could.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        if process.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The directory of this process's cgroup, where cgroup v2 is mounted.
fn own() -> Option<PathBuf> {
    let within = fs::read_to_string("/proc/self/cgroup").ok()?;
    let within = within.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|mount| directory(mount, within))
}

/// `id parent major:minor root mountpoint options … - type source options`
fn directory(mount: &str, within: &str) -> Option<PathBuf> {
    let (place, kind) = mount.split_once(" - ")?;
    if kind.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = place.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let below = within.strip_prefix(root.trim_end_matches('/'))?;
    Some(Path::new(point).join(below.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_follows_from_where_cgroups_are_mounted() {
        let mount = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        let found = directory(mount, "/user.slice/a.scope");
        assert_eq!(found, Some("/sys/fs/cgroup/user.slice/a.scope".into()));
        assert_eq!(directory(mount, "/"), Some("/sys/fs/cgroup/".into()));
        let part = "30 25 0:26 /docker/x /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw";
        assert_eq!(directory(part, "/docker/x/y"), Some("/sys/fs/cgroup/y".into()));
        assert_eq!(directory(part, "/elsewhere"), None);
        assert_eq!(directory("31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "/"), None);
    }
}
