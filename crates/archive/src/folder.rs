//! The data folder: `lock`, `id`, `switchyard.db` (with its `-wal` and `-shm`), `cas/`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FlockOperation;
use switchyard_store::StoreError;

use crate::{DiskCas, Options, SqliteArchive};

pub(crate) const LOCK_FILE: &str = "lock";
const ID_FILE: &str = "id";
pub(crate) const ARCHIVE_FILE: &str = "switchyard.db";
const CAS_FOLDER: &str = "cas";

/// A folder that one process works in. The lock is held until this and everything opened from it is dropped.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
    /// None for a folder that is only looked at.
    lock: Option<Arc<FolderLock>>,
}

impl DataFolder {
    /// Makes the folder if it is not there, and takes it for this process alone.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        fs::create_dir_all(&path).map_err(|e| cannot_use(&path, &plain(&path, &e)))?;
        let lock = FolderLock::take(&path)?;
        sync_name(&path).map_err(|e| cannot_use(&path, &plain(&path, &e)))?;
        give_id(&path).map_err(|e| cannot_use(&path, &plain(&path.join(ID_FILE), &e)))?;
        Ok(Self { path, lock: Some(Arc::new(lock)) })
    }

    /// Looks into a folder without taking it, while another process may be working there.
    pub fn peek(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let archive = path.join(ARCHIVE_FILE);
        match fs::metadata(&archive) {
            Ok(_) => Ok(Self { path, lock: None }),
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

    /// What this folder is called among all folders, wherever it is mounted or moved to. `None` before anybody has
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
            Some(lock) => SqliteArchive::open_with(file, Options::default(), Some(lock.clone())),
            None => SqliteArchive::open_read_only(file),
        }
    }

    pub fn cas(&self) -> DiskCas {
        DiskCas::new(self.path.join(CAS_FOLDER), self.lock.clone())
    }
}

/// An advisory lock on `DIR/lock`. The kernel gives it back when the process dies, however it dies.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
}

impl FolderLock {
    fn take(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| cannot_use(folder, &plain(&path, &e)))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(in_use(folder, &mut file)),
            Err(e) => return Err(cannot_use(folder, &format!("cannot lock {}: {e}", path.display()))),
        }
        write_pid(&mut file).map_err(|e| cannot_use(folder, &plain(&path, &e)))?;
        Ok(Self { file })
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

/// Under the lock: nobody else writes it.
fn give_id(folder: &Path) -> io::Result<()> {
    if DataFolder::id(folder).is_some() {
        return Ok(());
    }
    fs::write(folder.join(ID_FILE), format!("yard_{:032x}\n", rand::random::<u128>()))
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn in_use(folder: &Path, file: &mut File) -> StoreError {
    // Its owner writes the pid right after it has the lock: we may be between the two.
    const TRIES: u32 = 20;
    for _ in 0..TRIES {
        if let Some(pid) = read_pid(file) {
            return StoreError::InUse { path: folder.display().to_string(), pid };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    cannot_use(folder, "it is locked by a process that has not written its pid into the lock file")
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
