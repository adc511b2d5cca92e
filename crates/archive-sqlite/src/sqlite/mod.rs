//! The archive in one SQLite file: one thread writes, any number of connections read.
//!
//! - `journal`, `run_index`, `approvals`, `dead_letters`, `definitions`, `operations`, `registry`, `schedules`,
//!   `access`, `result_cache`, `retention`, `payload_holders`, `deletion`, `bulk`: one capability each, with its SQL
//! - `run_search`: the SQL of a filter on runs
//! - `writer`: the thread; all waiting work is one transaction and one disk sync
//! - `work`: the jobs of the thread; `session`: how it executes them inside a transaction
//! - `append`: events, and the changes to rows that follow from them
//! - `readers`: connections for queries; `newest`: a cache for the query that every submission makes
//! - `check`: whether the file may be used at all; `marker`: whether that check is needed
//! - `format`: SQLite's file formats, parsed without SQLite; `salvage`: reads files that SQLite cannot

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

/// A handle on the archive. Dropping the last clone waits until all submitted work is written.
#[derive(Debug, Clone)]
pub struct SqliteArchive {
    readers: Arc<Readers>,
    writing: Writing,
    newest: Arc<Newest>,
}

/// Which writes this handle allows.
#[derive(Debug, Clone)]
enum Writing {
    Nothing,
    /// API keys only, in a file that another process works on.
    KeysBeside,
    Everything(Arc<Writer>),
}

/// Options for opening an archive.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Largest size of the file in pages of 4 KiB. No limit if `None`.
    pub pages_max: Option<u32>,
    /// Receives messages about a check that takes long.
    pub notice: Notice,
}

impl SqliteArchive {
    /// Opens or creates the file. The caller makes sure that no other process writes to it; see
    /// [`DataFolder`](crate::DataFolder).
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(path.into(), Options::default(), None)
    }

    /// Like [`open`](Self::open), with options.
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
        // SQLite gives its other files the permissions of this one.
        let made = marker::remove(&path).and_then(|()| private::open(&path));
        made.map_err(|e| StoreError::unavailable(format!("cannot open {}: {e}", path.display())))?;
        let mut conn = connect(&path, OpenMode::Write(&options)).map_err(|e| cannot_open(&path, &e))?;
        migrations::migrate(&mut conn, &path)?;
        let newest = Arc::new(Newest::default());
        let writer = Writer::start(conn, path.clone(), newest.clone(), lock)?;
        let writing = Writing::Everything(Arc::new(writer));
        Ok(Self { readers: Arc::new(Readers::new(path)), writing, newest })
    }

    /// Opens an existing file for reading, even while another process writes to it.
    pub fn open_read_only(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_shared(path.into(), Writing::Nothing)
    }

    /// Like `open_read_only`, but API keys can be created and revoked.
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

    /// Sends work to the writer; it is durable when this returns.
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

/// The result of an examination of a file.
pub(crate) struct Examined {
    /// SQLite's messages about the damage.
    pub(crate) faults: Vec<String>,
    /// Whether the time limit ended the check early.
    pub(crate) cut_short: bool,
    /// The schema version; 0 if the file cannot be read, an error if this program does not know it.
    pub(crate) version: Result<usize, StoreError>,
}

/// Has SQLite check a file for damage, within the time limit if there is one.
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
    // No mutex inside SQLite: Rust guarantees that one thread at a time uses a connection.
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
