//! Checks whether a file may be used, before SQLite opens it: SQLite would overwrite the evidence of damage.
//!
//! A process that stops in order leaves a file beside the database that says so (`marker`). If that file is missing
//! or does not match the database, the last process was killed or the database was changed since: then the log and
//! the database are checked, for a bounded time.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use switchyard_store::StoreError;

use super::error::cannot_open;
use super::format::index::LogIndex;
use super::format::log::{Fault, Log, Worth};
use super::marker;
use super::salvage::{Pages, event_keys, read_log};
use crate::Notice;

/// Longest check of the database at a start. Structure first, then indexes against tables.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(10);
/// A shorter check is not reported.
const SAY_AFTER: Duration = Duration::from_secs(1);
/// SQLite's virtual machine steps between two readings of the clock.
const STEPS: i32 = 10_000;
/// Most lines reported about a damaged database. The first few are enough.
const LINES_MAX: usize = 20;

/// Refuses a database that is damaged. The caller holds the lock of the folder.
pub(super) fn before_use(path: &Path, notice: &Notice) -> Result<(), StoreError> {
    let log_bytes = fs::metadata(log_of(path)).map_or(0, |about| about.len());
    if !path.exists() {
        return match log_bytes {
            0 => Ok(()),
            _ => Err(damaged(path, "the file is gone, and its log is there")),
        };
    }
    if log_bytes == 0 && marker::fits(path) {
        return Ok(());
    }
    let begun = Instant::now();
    log(path)?;
    match database(path, Some(TIME_MAX), notice)? {
        Found { lines, .. } if !lines.is_empty() => return Err(damaged(path, &lines.join("; "))),
        Found { cut_short: true, .. } => notice.warn(&format!(
            "the check of {} was cut short after {} s, and had found nothing wrong until then: \
             `switchyard doctor --deep` checks all of it",
            path.display(),
            TIME_MAX.as_secs()
        )),
        Found { .. } => {
            let took_ms = begun.elapsed().as_millis();
            tracing::info!(path = %path.display(), took_ms, "the archive was checked after an unclean end");
        }
    }
    Ok(())
}

/// Refuses a log with committed frames that SQLite would ignore.
pub(super) fn log(path: &Path) -> Result<(), StoreError> {
    let log_path = log_of(path);
    let log = read_log(path)
        .map_err(|error| StoreError::unavailable(format!("cannot read {}: {error}", log_path.display())))?;
    let what = match log.fault() {
        Some(Fault::Header) => "its header does not verify, and there are frames behind it".to_owned(),
        Some(Fault::Middle { frame, of }) => {
            format!("frame {frame} of {of} does not verify, and there are later transactions behind it")
        }
        None => match missing_frames(path, &log) {
            Some((found, known)) => format!(
                "its index knows of {known} committed frames, and only {found} of them are there and verify"
            ),
            None => return Ok(()),
        },
    };
    let runs = match affected_runs(path, &log) {
        0 => String::new(),
        1 => "; what cannot be read has events of 1 run".to_owned(),
        runs => format!("; what cannot be read has events of {runs} runs"),
    };
    Err(damaged(&log_path, &format!("{what}{runs}")))
}

/// Compares the log with its index. If frames are missing from the log: the frames found and the frames known.
fn missing_frames(path: &Path, log: &Log) -> Option<(usize, usize)> {
    let index = LogIndex::read(&fs::read(index_of(path)).ok()?)?;
    let (readable, known) = (log.readable(), index.frames as usize);
    let same_log = log.header_is_sound && log.salts == index.salts;
    // A log that is gone as a whole counts as missing, unless the database file has everything that was in it.
    let gone = log.frames.is_empty() && !log.header_is_sound && index.copied < index.frames;
    (known > readable && (same_log || gone)).then_some((readable, known))
}

/// The number of runs with events that are only in committed frames that SQLite would ignore.
fn affected_runs(path: &Path, log: &Log) -> usize {
    let (readable, committed) = (log.readable(), log.committed());
    let (Ok(before), Ok(after)) =
        (Pages::with_log(path, log, readable), Pages::with_log(path, log, committed.max(readable)))
    else {
        return 0;
    };
    let ignored = log.frames.get(readable..committed).unwrap_or_default();
    let pages: HashSet<u32> =
        ignored.iter().filter(|frame| frame.worth != Worth::Other).map(|frame| frame.page).collect();
    let mut runs = HashSet::new();
    for page in pages {
        let known: HashSet<_> = event_keys(&before, page).into_iter().collect();
        let new = event_keys(&after, page).into_iter().filter(|key| !known.contains(key));
        runs.extend(new.map(|(run_no, _)| run_no));
    }
    runs.len()
}

/// The result of a check of the database.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// SQLite's messages about the damage.
    pub(super) lines: Vec<String>,
    /// Whether the time limit ended the check early.
    pub(super) cut_short: bool,
}

/// Has SQLite check a database and its log, without changing either.
pub(super) fn database(
    path: &Path,
    time_max: Option<Duration>,
    notice: &Notice,
) -> Result<Found, StoreError> {
    match check(path, time_max, notice) {
        Ok(found) => Ok(found),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Ok(Found { lines: vec![error.to_string()], cut_short: false })
            }
            _ => Err(cannot_open(path, &error)),
        },
    }
}

fn check(path: &Path, time_max: Option<Duration>, notice: &Notice) -> rusqlite::Result<Found> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_ONLY;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.progress_handler(STEPS, Some(watch(path, time_max, notice)))?;
    let mut found = Found::default();
    let mut statement = conn.prepare(&format!("PRAGMA integrity_check({LINES_MAX})"))?;
    let mut rows = statement.query([])?;
    loop {
        match rows.next() {
            Ok(Some(row)) => found.lines.push(row.get(0)?),
            Ok(None) => break,
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                found.cut_short = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    found.lines.retain(|line| line != "ok");
    Ok(found)
}

/// Returns a progress handler: it reports once a second, and returns whether the time is up.
fn watch(path: &Path, time_max: Option<Duration>, notice: &Notice) -> impl FnMut() -> bool + Send + use<> {
    let (path, notice) = (path.to_owned(), notice.clone());
    let mib = fs::metadata(&path).map_or(0, |about| about.len() >> 20);
    let limit = time_max.map_or(String::new(), |max| format!(" of at most {} s", max.as_secs()));
    let (begun, mut say_at) = (Instant::now(), SAY_AFTER);
    move || {
        let took = begun.elapsed();
        if took >= say_at {
            notice.info(&format!("checking {} ({mib} MiB): {} s{limit}", path.display(), took.as_secs()));
            say_at += SAY_AFTER;
        }
        time_max.is_some_and(|max| took >= max)
    }
}

fn damaged(path: &Path, what: &str) -> StoreError {
    StoreError::Corrupt(format!("{}: {what}", path.display()))
}

pub(super) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

pub(super) fn index_of(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_has_no_time_says_that_it_was_cut_short() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.db");
        let conn = Connection::open(&path).unwrap();
        let fill = "CREATE TABLE t (n INTEGER PRIMARY KEY, word TEXT); CREATE INDEX t_by_word ON t (word);
            WITH RECURSIVE upto(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM upto WHERE n < 20000)
            INSERT INTO t SELECT n, 'word ' || n FROM upto";
        conn.execute_batch(fill).unwrap();
        let found = database(&path, Some(Duration::ZERO), &Notice::default()).unwrap();
        assert!(found.cut_short && found.lines.is_empty(), "{found:?}");
        let found = database(&path, None, &Notice::default()).unwrap();
        assert!(!found.cut_short && found.lines.is_empty(), "{found:?}");
        conn.execute_batch(
            "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = 2 WHERE name = 't_by_word'",
        )
        .unwrap();
        let found = database(&path, None, &Notice::default()).unwrap();
        assert!(!found.lines.is_empty(), "an index that is not the table's");
    }
}
