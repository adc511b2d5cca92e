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
/// Folder for the readable events of histories that a salvage could not bring over.
pub(crate) const LEFT_OUT_FOLDER: &str = "left-out";

/// A data folder that one process works in. The lock is held until this and everything opened from it is dropped.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
    /// `None` for a folder that was opened with `peek`.
    lock: Option<Arc<FolderLock>>,
    notice: Notice,
}

impl DataFolder {
    /// Creates the folder if it does not exist, and locks it for this process.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_telling(path, Notice::default())
    }

    /// Like `open`, with a listener for progress and warnings.
    pub fn open_telling(path: impl Into<PathBuf>, notice: Notice) -> Result<Self, StoreError> {
        let path = path.into();
        private::create_folder(&path).map_err(|e| cannot_use(&path, &plain(&path, &e)))?;
        let lock = FolderLock::take(&path)?;
        private::tighten(&path, is_ours, &notice).map_err(|e| cannot_use(&path, &plain(&path, &e)))?;
        sync_name(&path).map_err(|e| cannot_use(&path, &plain(&path, &e)))?;
        give_id(&path).map_err(|e| cannot_use(&path, &plain(&path.join(ID_FILE), &e)))?;
        Ok(Self { path, lock: Some(Arc::new(lock)), notice })
    }

    /// Opens a folder for reading without locking it, while another process may be working there. If no process is, an
    /// archive with a damaged log is refused.
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

    /// Opens the archive of a folder to manage its API keys, which works even while another process uses the folder.
    pub fn archive_for_keys(path: impl Into<PathBuf>) -> Result<SqliteArchive, StoreError> {
        let path = path.into();
        match Self::open(&path) {
            Err(StoreError::InUse { .. }) => SqliteArchive::open_for_keys(path.join(ARCHIVE_FILE)),
            folder => folder?.archive(),
        }
    }

    /// The unique id of this folder, which stays the same if the folder is mounted elsewhere or moved. `None` before
    /// a process has worked in it.
    pub fn id(path: &Path) -> Option<String> {
        let text = fs::read_to_string(path.join(ID_FILE)).ok()?;
        // Without its newline it may be half written.
        text.strip_suffix('\n').filter(|id| !id.is_empty()).map(str::to_owned)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the archive: for reading and writing, or for reading only if the folder was opened with `peek`.
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

    /// The CAS of a folder that is only read.
    pub(crate) fn cas_in(path: &Path) -> DiskCas {
        DiskCas::new(path.join(CAS_FOLDER), None)
    }
}

/// Whether this crate puts a file or folder of this name into a data folder.
fn is_ours(name: &str) -> bool {
    [LOCK_FILE, ID_FILE, CAS_FOLDER, LEFT_OUT_FOLDER].contains(&name) || name.starts_with(ARCHIVE_FILE)
}

/// An advisory lock on `DIR/lock`. The kernel releases it when the process dies, however it dies.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
}

impl FolderLock {
    fn take(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(LOCK_FILE);
        let mut file = private::open(&path).map_err(|e| cannot_use(folder, &plain(&path, &e)))?;
        // The process that holds the lock writes its pid right after taking it; a reader holds the lock only for a
        // moment.
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

    /// Takes a shared lock, so that no process starts while the returned file is open. `None` if there is no lock
    /// file yet.
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
        // Only the pid is removed. Removing the file would let two processes lock two files of the same name.
        let _ = self.file.set_len(0);
    }
}

/// Syncs the parent folder, so that a folder that was just created survives a power cut.
fn sync_name(folder: &Path) -> io::Result<()> {
    match folder.canonicalize()?.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Writes an id if the folder has none. The caller holds the lock, so no other process writes it.
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

/// Whether a process exists. A killed process leaves its pid behind; a process in another container is not visible.
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

/// A sentence for an I/O error that names the path.
fn plain(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => "it is not a directory".to_owned(),
        io::ErrorKind::PermissionDenied => format!("no permission for {}", path.display()),
        _ => format!("{}: {error}", path.display()),
    }
}
