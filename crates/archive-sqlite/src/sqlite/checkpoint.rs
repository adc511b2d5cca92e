//! Moves pages from the write-ahead log into the file, so that the log stays short.
//!
//! SQLite's automatic checkpoint is off, because it would run inside a commit, before callers are answered.

use rusqlite::Connection;

/// Pages of 4 KiB in the log at which a checkpoint is due. Measured with `examples/append_rate.rs` on a disk that
/// syncs in 0.15 ms: a checkpoint of 4,000 pages holds the writer up for 1 to 10 ms, one of 8,000 for twice that, and
/// the rate is the same. Fewer pages cost rate, because pages that change often are copied more often.
const DUE_PAGES: i64 = 4_000;

/// Runs a checkpoint if one is due. Called between transactions, after all callers were answered.
pub(super) fn if_due(conn: &Connection) {
    let done = checkpoint(conn, "NOOP").and_then(|log_pages| match log_pages {
        0..DUE_PAGES => Ok(log_pages),
        _ => checkpoint(conn, "PASSIVE"),
    });
    if let Err(error) = done {
        // No data is lost: the log still has every page, and the next commit tries again.
        tracing::warn!(%error, "cannot move the write-ahead log into the archive");
    }
}

/// Moves the whole log into the database file and empties the log.
pub(super) fn for_good(conn: &Connection) {
    if let Err(error) = checkpoint(conn, "TRUNCATE") {
        tracing::warn!(%error, "cannot empty the write-ahead log; it will be read at the next start");
    }
}

/// Runs a checkpoint and returns the number of pages in the log.
fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<i64> {
    conn.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?.query_row([], |row| row.get(1))
}
