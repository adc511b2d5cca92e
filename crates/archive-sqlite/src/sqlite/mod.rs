//! The archive in one SQLite file: one thread writes, any number of connections read.
//!
//! - `writer`: the thread; everything that waits is one transaction and one disk sync
//! - `journal`: what the thread does inside a transaction
//! - `project`: the rows of runs and approvals that follow from an event
//! - `read`: questions, answered on connections of their own; `newest`: one that need not be asked twice
//! - `check`: whether the file may be used at all; `marker`: whether that has to be asked
//! - `format`: SQLite's files without SQLite; `salvage`: what can be read of them when SQLite cannot

pub(crate) mod check;
mod checkpoint;
mod dead;
mod error;
mod format;
mod journal;
mod keys;
mod mark;
mod marker;
mod migrations;
mod newest;
mod operations;
mod project;
mod read;
mod retain;
mod rows;
pub(crate) mod salvage;
mod schedules;
mod workflows;
mod writer;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};
use switchyard_core::run::Event;
use switchyard_core::{ApprovalId, Hash, OperationId, Payload, RunId, Timestamp};
use switchyard_store::{
    Ack, ApiKeyRecord, AppliedOperation, ApprovalFilter, ApprovalRecord, Archive, ArchiveMark, DeadLetter,
    Mutation, MutationOutcome, OperationRecord, OperationRequest, Page, Retention, RunFilter, RunRecord,
    ScheduleRecord, StoreError, Unfinished, WorkflowRecord,
};

use crate::folder::FolderLock;
use crate::{Notice, private};
use error::cannot_open;
use journal::{Answer, Work};
use newest::Newest;
use read::Readers;
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
        let mut conn = connect(&path, Access::Write(&options)).map_err(|e| cannot_open(&path, &e))?;
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
        let conn = connect(&path, Access::Read).map_err(|e| cannot_open(&path, &e))?;
        migrations::check_current(&conn, &path)?;
        Ok(Self { readers: Arc::new(Readers::new(path)), writing, newest: Arc::default() })
    }

    /// Which payloads something here mentions, and what does.
    pub(crate) async fn payload_holders(&self) -> Result<Vec<(Hash, String)>, StoreError> {
        self.readers.ask(retain::payload_holders).await
    }

    /// Changes the keys of a file that another process works on.
    async fn mutate_beside(
        &self,
        mutation: Mutation,
        operation: Option<OperationRequest>,
    ) -> Result<MutationOutcome, StoreError> {
        let path = self.readers.path().to_owned();
        let mutating =
            tokio::task::spawn_blocking(move || keys::mutate_beside(&path, &mutation, operation.as_ref()));
        mutating.await.unwrap_or_else(|e| Err(StoreError::OutcomeUnknown(format!("interrupted: {e}"))))
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
    async fn write(&self, work: Work) -> Result<Answer, StoreError> {
        self.writer()?.hand_over(work).await
    }
}

enum Access<'a> {
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
    /// Of the schema; 0 if the file cannot be read.
    pub(crate) version: usize,
}

/// Lets SQLite look for damage, for as long as it may take.
pub(crate) fn examine(
    path: &Path,
    time_max: Option<Duration>,
    notice: &Notice,
) -> Result<Examined, StoreError> {
    let check::Found { lines, cut_short } = check::database(path, time_max, notice)?;
    let version = match lines.is_empty() {
        true => migrations::version(&connect(path, Access::Read).map_err(|e| cannot_open(path, &e))?, path)?,
        false => 0,
    };
    Ok(Examined { faults: lines, cut_short, version })
}

fn connect(path: &Path, access: Access<'_>) -> rusqlite::Result<Connection> {
    // No mutex inside SQLite: a connection is used by one thread at a time, which Rust sees to.
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match &access {
        Access::Read => Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        Access::Write(_) => {
            let rw = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            Connection::open_with_flags(path, flags | rw)?
        }
    };
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 67108864;")?;
    if let Access::Write(options) = access {
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

#[async_trait]
impl Archive for SqliteArchive {
    async fn mark(&self) -> Result<ArchiveMark, StoreError> {
        let location: Arc<str> = self.readers.path().display().to_string().into();
        self.readers.ask(move |conn| mark::read(conn, location)).await
    }

    fn append(&self, events: Vec<Event>) -> Ack {
        let handed_over = self.writer().map(|writer| writer.hand_over(Work::Append(events)));
        Box::pin(async move { handed_over?.await.map(|_| ()) })
    }

    async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.readers.ask(move |conn| read::events(conn, run, after, limit)).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        self.readers.ask(move |conn| read::run(conn, run)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError> {
        let filter = filter.clone();
        self.readers.ask(move |conn| read::runs(conn, &filter)).await
    }

    async fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError> {
        self.readers.ask(read::unfinished).await
    }

    async fn unfinished_with_ended_children(&self) -> Result<Vec<RunId>, StoreError> {
        self.readers.ask(read::unfinished_with_ended_children).await
    }

    async fn by_idempotency_key(&self, key: &str) -> Result<Option<(RunId, Hash)>, StoreError> {
        let key = key.to_owned();
        self.readers.ask(move |conn| read::by_idempotency_key(conn, &key)).await
    }

    async fn run_operation(
        &self,
        run: RunId,
        id: &OperationId,
    ) -> Result<Option<AppliedOperation>, StoreError> {
        let id = id.clone();
        self.readers.ask(move |conn| read::run_operation(conn, run, &id)).await
    }

    async fn put_definition(&self, hash: Hash, canonical: Arc<str>) -> Result<(), StoreError> {
        // The same workflow is submitted again and again: looking costs less than a disk sync.
        if self.readers.ask(move |conn| read::has_definition(conn, hash)).await? {
            return Ok(());
        }
        self.write(Work::Definition { hash, canonical }).await.map(|_| ())
    }

    async fn definition(&self, hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
        self.readers.ask(move |conn| read::definition(conn, hash)).await
    }

    async fn mutate(
        &self,
        mutation: Mutation,
        operation: Option<&OperationRequest>,
    ) -> Result<MutationOutcome, StoreError> {
        let operation = operation.cloned();
        let of_keys = matches!(mutation, Mutation::PutApiKey(_) | Mutation::RevokeApiKey { .. });
        if of_keys && matches!(self.writing, Writing::KeysBeside) {
            return self.mutate_beside(mutation, operation).await;
        }
        match self.write(Work::Mutation { mutation: Box::new(mutation), operation }).await? {
            Answer::Mutated(outcome) => Ok(outcome?),
            other => Err(StoreError::Corrupt(format!("a mutation was answered {other:?}"))),
        }
    }

    async fn operation(&self, id: &OperationId) -> Result<Option<OperationRecord>, StoreError> {
        let id = id.clone();
        self.readers.ask(move |conn| operations::by_id(conn, &id)).await
    }

    async fn forget_operations(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.write(Work::ForgetOperations { before, limit }).await.map(Answer::removed)
    }

    async fn workflow(&self, name: &str, version: Option<u32>) -> Result<Option<WorkflowRecord>, StoreError> {
        let alone = matches!(self.writing, Writing::Everything(_)) && version.is_none();
        if alone && let Some(known) = self.newest.of(name) {
            return Ok(Some(known));
        }
        let name = name.to_owned();
        let found = self.readers.ask(move |conn| read::workflow(conn, &name, version)).await?;
        if alone && let Some(record) = &found {
            self.newest.learn(record);
        }
        Ok(found)
    }

    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, StoreError> {
        self.readers.ask(read::workflows).await
    }

    async fn advance_schedule(
        &self,
        name: &str,
        seen: Option<Timestamp>,
        next: Option<Timestamp>,
        last_run: Option<RunId>,
    ) -> Result<bool, StoreError> {
        let step = schedules::Advance { name: name.to_owned(), seen, next, last_run };
        Ok(matches!(self.write(Work::AdvanceSchedule(step)).await?, Answer::Changed(true)))
    }

    async fn schedule(&self, name: &str) -> Result<Option<ScheduleRecord>, StoreError> {
        let name = name.to_owned();
        self.readers.ask(move |conn| schedules::by_name(conn, &name)).await
    }

    async fn schedules(&self) -> Result<Vec<ScheduleRecord>, StoreError> {
        self.readers.ask(schedules::all).await
    }

    async fn any_api_key(&self) -> Result<bool, StoreError> {
        self.readers.ask(keys::any).await
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.readers.ask(keys::all).await
    }

    async fn api_key(&self, id: &str) -> Result<Option<ApiKeyRecord>, StoreError> {
        let id = id.to_owned();
        self.readers.ask(move |conn| keys::by_id(conn, &id)).await
    }

    async fn bury(&self, letter: DeadLetter) -> Result<(), StoreError> {
        self.write(Work::Bury(Box::new(letter))).await.map(|_| ())
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError> {
        self.readers.ask(move |conn| dead::newest(conn, limit)).await
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>, StoreError> {
        let id = id.to_owned();
        self.readers.ask(move |conn| dead::by_id(conn, &id)).await
    }

    async fn approval(&self, approval: &ApprovalId) -> Result<Option<ApprovalRecord>, StoreError> {
        let approval = approval.clone();
        self.readers.ask(move |conn| read::approval(conn, &approval)).await
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRecord>, StoreError> {
        let filter = filter.clone();
        self.readers.ask(move |conn| read::approvals(conn, &filter)).await
    }

    async fn cached(&self, scope: &str, key: &str, now: Timestamp) -> Result<Option<Payload>, StoreError> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.readers.ask(move |conn| read::cached(conn, &scope, &key, now)).await
    }

    async fn cache(
        &self,
        scope: &str,
        key: &str,
        value: Payload,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.write(Work::Cache { scope, key, value, now, expires_at: now.plus(ttl) }).await.map(|_| ())
    }

    async fn retain(&self, policy: &Retention, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.write(Work::Retain { policy: *policy, now, limit }).await.map(Answer::removed)
    }

    async fn held_payloads(&self, of: &[Hash], since: Timestamp) -> Result<HashSet<Hash>, StoreError> {
        let of = of.to_vec();
        self.readers.ask(move |conn| retain::held_payloads(conn, &of, since)).await
    }
}
