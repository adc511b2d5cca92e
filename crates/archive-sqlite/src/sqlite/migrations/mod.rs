//! Schema migrations. A step is never edited after a release: a new one is added.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use switchyard_store::StoreError;

use super::error::{cannot_open, sentence};

/// `MIGRATIONS[n]` migrates from version `n` to version `n + 1`.
const MIGRATIONS: &[&str] = &[
    include_str!("0001_history.sql"),
    include_str!("0002_schedules.sql"),
    include_str!("0003_api_keys.sql"),
    include_str!("0004_payloads.sql"),
    include_str!("0005_dead_letters.sql"),
    include_str!("0006_archive_mark.sql"),
    include_str!("0007_dead_letter_excerpts.sql"),
    include_str!("0008_event_checksums.sql"),
    include_str!("0009_operations.sql"),
    include_str!("0010_run_operations.sql"),
    include_str!("0011_run_filters.sql"),
    include_str!("0012_bulk_jobs.sql"),
    include_str!("0013_schedule_starts.sql"),
];

/// "SWYD", so that another program's SQLite file is not taken for ours.
const APPLICATION_ID: i64 = 0x5357_5944;

/// The identification of a database file.
struct Stamp {
    application_id: i64,
    version: usize,
    empty: bool,
}

/// Migrates a file to the version this binary knows.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let stamp = known_stamp(conn, path)?;
    for (version, step) in MIGRATIONS.iter().enumerate().skip(stamp.version) {
        apply(conn, version + 1, step).map_err(|e| {
            StoreError::unavailable(format!(
                "cannot bring {} to schema version {}: {}",
                path.display(),
                version + 1,
                sentence(&e, path)
            ))
        })?;
    }
    Ok(())
}

/// Refuses a file that has another schema version than this binary.
pub(super) fn check_current(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let stamp = known_stamp(conn, path)?;
    if stamp.version < MIGRATIONS.len() {
        return Err(StoreError::unavailable(format!(
            "{} has schema version {}, this program reads version {}: open it for writing once to migrate it",
            path.display(),
            stamp.version,
            MIGRATIONS.len()
        )));
    }
    Ok(())
}

/// The schema version of a file of ours.
pub(super) fn version(conn: &Connection, path: &Path) -> Result<usize, StoreError> {
    Ok(known_stamp(conn, path)?.version)
}

fn known_stamp(conn: &Connection, path: &Path) -> Result<Stamp, StoreError> {
    let stamp = read_stamp(conn).map_err(|e| cannot_open(path, &e))?;
    if !stamp.empty && stamp.application_id != APPLICATION_ID {
        let message = format!("{} is a SQLite file, but not a Switchyard archive", path.display());
        return Err(StoreError::unavailable(message));
    }
    if stamp.version > MIGRATIONS.len() {
        return Err(StoreError::unavailable(format!(
            "{} has schema version {}, this program knows versions up to {}: use a newer switchyard",
            path.display(),
            stamp.version,
            MIGRATIONS.len()
        )));
    }
    Ok(stamp)
}

fn read_stamp(conn: &Connection) -> rusqlite::Result<Stamp> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok(Stamp {
        application_id: number("PRAGMA application_id")?,
        version: usize::try_from(number("PRAGMA user_version")?).unwrap_or(usize::MAX),
        empty: number("SELECT count(*) FROM sqlite_schema")? == 0,
    })
}

fn apply(conn: &mut Connection, version: usize, step: &str) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch(step)?;
    tx.execute_batch(&format!("PRAGMA user_version = {version}; PRAGMA application_id = {APPLICATION_ID};"))?;
    tx.commit()
}
