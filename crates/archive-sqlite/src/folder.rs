//! The data folder: `lock`, `id`, `switchyard.db` (with its `-wal`, `-shm` and `.clean`), `cas/`. Only its owner may
//! read it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FlockOperation;
use switchyard_store::StoreError;

use crate::{DiskCas, Notice, Options, SqliteArchive, private, sqlite};

pub(crate) const LOCK_FILE: &str = "lock";
const ID_FILE: &str = "id";
pub(crate) const ARCHIVE_FILE: &str = "switchyard.db";
const CAS_FOLDER: &str = "cas";
/// What a salvage could read of histories that are not whole.
pub(crate) const LEFT_OUT_FOLDER: &str = "left-out";

/// A folder that one process works in. The lock is held until this and everything opened from it is dropped.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
    /// None for a folder that is only looked at.
    lock: Option<Arc<FolderLock>>,
    notice: Notice,
}

impl DataFolder {
    /// Makes the folder if it is not there, and takes it for this process alone.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_telling(path, Notice::default())
    }

    /// The same, with a listener for progress and warnings.
    pub fn open_telling(path: impl Into<PathBuf>, notice: Notice) -> Result<Self, StoreError> {
        let path = path.into();
        private::create_folder(&path).map_err(|e| cannot_use(&path, &plain(&path, &e)))?;
        let lock = FolderLock::take(&path)?;
        private::tighten(&path, is_ours, &notice).map_err(|e| cannot_use(&path, &plain(&path, &e)))?;
        sync_name(&path).map_err(|e| cannot_use(&path, &plain(&path, &e)))?;
        give_id(&path).map_err(|e| cannot_use(&path, &plain(&path.join(ID_FILE), &e)))?;
        Ok(Self { path, lock: Some(Arc::new(lock)), notice })
    }

    /// Looks into a folder without taking it, while another process may be working there. If none is, what the last one
    /// left is refused if it is damaged.
    pub fn peek(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let archive = path.join(ARCHIVE_FILE);
        match fs::metadata(&archive) {
            Ok(_) => {
                if let Ok(_nobody_starts) = FolderLock::share(&path) {
                    sqlite::check_log(&archive)?;
                }
                Ok(Self { path, lock: None, notice: Notice::default() })
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(cannot_use(&path, &format!("there is no {ARCHIVE_FILE} in it")))
            }
            Err(e) => Err(cannot_use(&path, &plain(&path, &e))),
        }
    }

    /// The archive of a folder, for its API keys: they can be changed while another process works there as well.
    pub fn archive_for_keys(path: impl Into<PathBuf>) -> Result<SqliteArchive, StoreError> {
        let path = path.into();
        match Self::open(&path) {
            Err(StoreError::InUse { .. }) => SqliteArchive::open_for_keys(path.join(ARCHIVE_FILE)),
            folder => folder?.archive(),
        }
    }

    /// What this folder is called among all folders, wherever it is mounted or moved to. `None` before a process has
    /// worked in it.
    pub fn id(path: &Path) -> Option<String> {
        let text = fs::read_to_string(path.join(ID_FILE)).ok()?;
        // Without its newline it may be half written.
        text.strip_suffix('\n').filter(|id| !id.is_empty()).map(str::to_owned)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The archive: for reading and writing, or for reading only if the folder was peeked into.
    pub fn archive(&self) -> Result<SqliteArchive, StoreError> {
        let file = self.path.join(ARCHIVE_FILE);
        match &self.lock {
            Some(lock) => {
                let options = Options { notice: self.notice.clone(), ..Options::default() };
                SqliteArchive::open_with(file, options, Some(lock.clone()))
            }
            None => SqliteArchive::open_read_only(file),
        }
    }

    pub fn cas(&self) -> DiskCas {
        DiskCas::new(self.path.join(CAS_FOLDER), self.lock.clone())
    }

    /// The payloads of a folder that is only read.
    pub(crate) fn cas_in(path: &Path) -> DiskCas {
        DiskCas::new(path.join(CAS_FOLDER), None)
    }
}

/// What this crate puts into a data folder.
fn is_ours(name: &str) -> bool {
    [LOCK_FILE, ID_FILE, CAS_FOLDER, LEFT_OUT_FOLDER].contains(&name) || name.starts_with(ARCHIVE_FILE)
}

/// An advisory lock on `DIR/lock`. The kernel gives it back when the process dies, however it dies.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
}

impl FolderLock {
    fn take(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(LOCK_FILE);
        let mut file = private::open(&path).map_err(|e| cannot_use(folder, &plain(&path, &e)))?;
        // A process that works here writes its pid right after it has the lock; a reader has the lock for a moment.
        const TRIES: u32 = 200;
        let mut owner = None;
        for _ in 0..TRIES {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    write_pid(&mut file).map_err(|e| cannot_use(folder, &plain(&path, &e)))?;
                    return Ok(Self { file });
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(e) => return Err(cannot_use(folder, &format!("cannot lock {}: {e}", path.display()))),
            }
            owner = read_pid(&mut file);
            if owner.is_some_and(is_alive) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(match owner {
            Some(pid) => StoreError::InUse { path: folder.display().to_string(), pid },
            None => cannot_use(
                folder,
                "it is locked by a process that has not written its pid into the lock file",
            ),
        })
    }

    /// Keeps others from starting while the returned file is open. `None` where there is nothing to lock yet.
    pub(crate) fn share(folder: &Path) -> Result<Option<File>, StoreError> {
        let Ok(mut file) = File::open(folder.join(LOCK_FILE)) else { return Ok(None) };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let pid = read_pid(&mut file).unwrap_or(0);
                Err(StoreError::InUse { path: folder.display().to_string(), pid })
            }
            _ => Ok(Some(file)),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // The file stays: removing it would let two processes lock two files of the same name. Only the pid goes.
        let _ = self.file.set_len(0);
    }
}

/// A folder that was just made must outlive a power cut as well as what is written into it.
fn sync_name(folder: &Path) -> io::Result<()> {
    match folder.canonicalize()?.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Under the lock: no other process writes it.
fn give_id(folder: &Path) -> io::Result<()> {
    if DataFolder::id(folder).is_some() {
        return Ok(());
    }
    let mut file = private::create(&folder.join(ID_FILE))?;
    file.write_all(format!("yard_{:032x}\n", rand::random::<u128>()).as_bytes())
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// A process that was killed leaves its pid behind; in another container it cannot be seen.
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

pub(crate) fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    // Without its newline the number may be half written.
    text.strip_suffix('\n')?.parse().ok()
}

fn cannot_use(folder: &Path, why: &str) -> StoreError {
    StoreError::unavailable(format!("cannot use {} as data folder: {why}", folder.display()))
}

/// The operating system's words, with the path they are about.
fn plain(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => "it is not a directory".to_owned(),
        io::ErrorKind::PermissionDenied => format!("no permission for {}", path.display()),
        _ => format!("{}: {error}", path.display()),
    }
}
