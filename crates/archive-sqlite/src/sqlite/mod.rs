//! The archive in one SQLite file: one thread writes, any number of connections read.
//!
//! - `journal`, `run_index`, `approvals`, `dead_letters`, `definitions`, `operations`, `registry`, `schedules`,
//!   `access`, `result_cache`, `retention`, `payload_holders`, `deletion`, `bulk`: a capability each, with its SQL
//! - `run_search`: the SQL of a filter on runs
//! - `writer`: the thread; all waiting work is one transaction and one disk sync
//! - `work`: what the thread is handed; `session`: what it does inside a transaction
//! - `append`: events, and the changes to rows that follow from them
//! - `readers`: connections for questions; `newest`: the answer to one that every submission asks
//! - `check`: whether the file may be used at all; `marker`: whether that has to be asked
//! - `format`: SQLite's files without SQLite; `salvage`: what can be read of them when SQLite cannot

mod access;
mod append;
mod approvals;
mod bulk;
pub(crate) mod check;
mod checkpoint;
mod dead_letters;
mod definitions;
mod deletion;
mod error;
mod format;
mod journal;
mod mark;
mod marker;
mod migrations;
mod newest;
mod operations;
mod payload_holders;
mod readers;
mod registry;
mod result_cache;
mod retention;
mod rows;
mod run_index;
mod run_search;
pub(crate) mod salvage;
mod schedules;
mod session;
mod wheres;
mod work;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use switchyard_store::StoreError;

use crate::folder::FolderLock;
use crate::{Notice, private};
use error::cannot_open;
use newest::Newest;
use readers::Readers;
use work::{Performed, Work};
use writer::Writer;

/// A handle on the archive. Dropping the last clone waits until everything handed over is written.
#[derive(Debug, Clone)]
pub struct SqliteArchive {
    readers: Arc<Readers>,
    writing: Writing,
    newest: Arc<Newest>,
}

/// What may be written, and how.
#[derive(Debug, Clone)]
enum Writing {
    Nothing,
    /// API keys, in a file that another process works on.
    KeysBeside,
    Everything(Arc<Writer>),
}

/// How to open an archive, for those who need to deviate.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The file grows to this many pages of 4 KiB at most, then it is full. No limit if not given.
    pub pages_max: Option<u32>,
    /// Who hears of a check that takes long.
    pub notice: Notice,
}

impl SqliteArchive {
    /// Opens or makes the file. The caller sees to it that no other process writes to it; see
    /// [`DataFolder`](crate::DataFolder).
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(path.into(), Options::default(), None)
    }

    /// The same with options.
    pub fn open_custom(path: impl Into<PathBuf>, options: Options) -> Result<Self, StoreError> {
        Self::open_with(path.into(), options, None)
    }

    pub(crate) fn open_with(
        path: PathBuf,
        options: Options,
        lock: Option<Arc<FolderLock>>,
    ) -> Result<Self, StoreError> {
        let path: Arc<Path> = path.into();
        check::before_use(&path, &options.notice)?;
        // SQLite gives its other files the rights of this one.
        let made = marker::remove(&path).and_then(|()| private::open(&path));
        made.map_err(|e| StoreError::unavailable(format!("cannot open {}: {e}", path.display())))?;
        let mut conn = connect(&path, OpenMode::Write(&options)).map_err(|e| cannot_open(&path, &e))?;
        migrations::migrate(&mut conn, &path)?;
        let newest = Arc::new(Newest::default());
        let writer = Writer::start(conn, path.clone(), newest.clone(), lock)?;
        let writing = Writing::Everything(Arc::new(writer));
        Ok(Self { readers: Arc::new(Readers::new(path)), writing, newest })
    }

    /// Opens an existing file for reading, also while another process writes to it.
    pub fn open_read_only(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_shared(path.into(), Writing::Nothing)
    }

    /// The same, but API keys can be made and revoked.
    pub(crate) fn open_for_keys(path: PathBuf) -> Result<Self, StoreError> {
        Self::open_shared(path, Writing::KeysBeside)
    }

    fn open_shared(path: PathBuf, writing: Writing) -> Result<Self, StoreError> {
        let path: Arc<Path> = path.into();
        let conn = connect(&path, OpenMode::Read).map_err(|e| cannot_open(&path, &e))?;
        migrations::check_current(&conn, &path)?;
        Ok(Self { readers: Arc::new(Readers::new(path)), writing, newest: Arc::default() })
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        match &self.writing {
            Writing::Everything(writer) => Ok(writer),
            Writing::Nothing | Writing::KeysBeside => {
                let file = self.readers.path().display();
                Err(StoreError::unavailable(format!("{file} was opened for reading only")))
            }
        }
    }

    /// Hands work to the writer; durable at return.
    async fn write(&self, work: Work) -> Result<Performed, StoreError> {
        self.writer()?.hand_over(work).await
    }
}

enum OpenMode<'a> {
    Read,
    Write(&'a Options),
}

/// Refuses a file whose log is damaged. For readers of a file without a writer.
pub(crate) fn check_log(path: &Path) -> Result<(), StoreError> {
    check::log(path)
}

/// What a look at a file found.
pub(crate) struct Examined {
    /// What is wrong, in SQLite's words.
    pub(crate) faults: Vec<String>,
    /// There was no time to look at everything.
    pub(crate) cut_short: bool,
    /// Of the schema, 0 if the file cannot be read; an error if this program does not know it.
    pub(crate) version: Result<usize, StoreError>,
}

/// Lets SQLite look for damage, for as long as it may take.
pub(crate) fn examine(
    path: &Path,
    time_max: Option<Duration>,
    notice: &Notice,
) -> Result<Examined, StoreError> {
    let check::Found { lines, cut_short } = check::database(path, time_max, notice)?;
    let version = match lines.is_empty() {
        true => migrations::version(&connect(path, OpenMode::Read).map_err(|e| cannot_open(path, &e))?, path),
        false => Ok(0),
    };
    Ok(Examined { faults: lines, cut_short, version })
}

fn connect(path: &Path, mode: OpenMode<'_>) -> rusqlite::Result<Connection> {
    // No mutex inside SQLite: a connection is used by one thread at a time, which Rust sees to.
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match &mode {
        OpenMode::Read => Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        OpenMode::Write(_) => {
            let rw = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            Connection::open_with_flags(path, flags | rw)?
        }
    };
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 67108864;")?;
    if let OpenMode::Write(options) = mode {
        prepare_for_writing(&conn, options)?;
    }
    Ok(conn)
}

fn prepare_for_writing(conn: &Connection, options: &Options) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // FULL: a commit is on the disk, not only in the kernel. The writer checkpoints by itself, after the acks.
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = OFF;",
    )?;
    if let Some(pages) = options.pages_max {
        conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(())
}
