//! Checks a data folder. It changes nothing, apart from a temporary file that it writes and removes.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use switchyard_store::Check;

use crate::folder::{self, DataFolder, FolderLock};
use crate::sqlite::check::TIME_MAX;
use crate::{Notice, private, sqlite};

const DAMAGED: &str = "`switchyard doctor --deep` names the runs, `switchyard doctor --salvage NEWDIR` keeps what is whole; \
                       or restore the folder from a backup, and keep this one for the analysis";

/// Free space below `SPACE` is a warning; below `SPACE_MIN` the next checkpoint may fail.
const SPACE: u64 = 1 << 30;
const SPACE_MIN: u64 = 64 << 20;
/// A disk that takes longer to sync than this makes every step slow.
const SYNC: Duration = Duration::from_millis(100);

impl DataFolder {
    /// Checks the lock, the permissions, the archive and the disk. With `deep` the check of the archive has no time
    /// limit.
    pub fn examine(path: &Path, deep: bool, notice: &Notice) -> Vec<Check> {
        if !path.exists() {
            let found = format!("{} is not there", path.display());
            return vec![Check::warning("folder", found, "the first command that works in it makes it")];
        }
        let mut checks = vec![lock(path), rights(path)];
        checks.push(archive(path, (!deep).then_some(TIME_MAX), notice));
        checks.extend([space(path), sync(path)]);
        checks
    }
}

fn rights(path: &Path) -> Check {
    match private::is_open(path) {
        true => Check::warning(
            "folder rights",
            "others may look into it",
            format!("chmod 700 {}", path.display()),
        ),
        false => Check::ok("folder rights", "its owner's alone"),
    }
}

fn lock(path: &Path) -> Check {
    let Ok(mut file) = File::open(path.join(folder::LOCK_FILE)) else {
        return Check::ok("folder lock", "no process has worked here yet");
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Check::ok("folder lock", "free"),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let pid = folder::read_pid(&mut file);
            Check::ok("folder lock", pid.map_or("held".to_owned(), |pid| format!("held by process {pid}")))
        }
        Err(error) => {
            Check::failed("folder lock", error, "a file system with locks is needed: not NFS without them")
        }
    }
}

fn archive(folder: &Path, time_max: Option<Duration>, notice: &Notice) -> Check {
    let file = folder.join(folder::ARCHIVE_FILE);
    if !file.exists() {
        return Check::ok("archive", "there is none yet");
    }
    // A process that works in the folder changes the log all the time, and SQLite tracks those changes.
    if let Ok(_nobody_starts) = FolderLock::share(folder)
        && let Err(error) = sqlite::check_log(&file)
    {
        return Check::failed("archive", error, DAMAGED);
    }
    match sqlite::examine(&file, time_max, notice) {
        Ok(found) if !found.faults.is_empty() => Check::failed("archive", found.faults.join("; "), DAMAGED),
        Ok(sqlite::Examined { version: Err(unknown), .. }) => Check::refused("archive", unknown),
        Ok(found) => {
            let version = found.version.unwrap_or(0);
            let mib = fs::metadata(&file).map_or(0, |about| about.len()) >> 20;
            let size = format!("schema version {version}, {mib} MiB");
            match (found.cut_short, time_max) {
                (true, Some(max)) => Check::warning(
                    "archive",
                    format!("nothing wrong within {} s, {size}", max.as_secs()),
                    "`switchyard doctor --deep` looks at all of it",
                ),
                _ => Check::ok("archive", format!("whole, {size}")),
            }
        }
        Err(error) => Check::failed("archive", error, DAMAGED),
    }
}

fn space(path: &Path) -> Check {
    match rustix::fs::statvfs(path) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let found = format!("{} MiB free", free >> 20);
            match free {
                0..SPACE_MIN => {
                    Check::failed("disk space", found, "make room: runs stop when the disk is full")
                }
                SPACE_MIN..SPACE => Check::warning("disk space", found, "make room before it is full"),
                _ => Check::ok("disk space", found),
            }
        }
        Err(error) => Check::failed("disk space", error, "is the disk there?"),
    }
}

/// Times a write and a sync, as a commit does them.
fn sync(path: &Path) -> Check {
    let write = || {
        let mut file = tempfile::tempfile_in(path)?;
        file.write_all(&[0; 4_096])?;
        let begun = Instant::now();
        file.sync_all()?;
        Ok::<_, std::io::Error>(begun.elapsed())
    };
    match write() {
        Ok(took) => {
            let found = format!("a write of 4 KiB is on the disk after {:.1} ms", took.as_secs_f64() * 1e3);
            if took > SYNC {
                Check::warning("disk sync", found, "every step waits for one: a faster disk")
            } else {
                Check::ok("disk sync", found)
            }
        }
        Err(error) => Check::failed("disk sync", error, "the process needs write access to this folder"),
    }
}
