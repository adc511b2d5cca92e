//! Read queries. Each runs on a connection of its own, which sees everything that was acknowledged.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, Params, Row};
use switchyard_store::StoreError;
use tokio::sync::Semaphore;

use super::error::cannot_read;
use super::{OpenMode, connect};

/// Why a query failed.
#[derive(Debug)]
pub(super) enum Unread {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Unread {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(super) type Answer<T> = Result<T, Unread>;

/// A pool of read connections. They are opened when needed and kept: opening one reads and parses the whole schema,
/// which costs many times what a query does.
#[derive(Debug)]
pub(super) struct Readers {
    path: Arc<Path>,
    idle: Mutex<Vec<Connection>>,
    /// One permit for each connection, so that callers wait here and block no thread.
    permits: Semaphore,
}

/// Most queries at once. More than there are cores, because some wait for the disk.
const CONNECTIONS_MAX: usize = 8;

impl Readers {
    pub(super) fn new(path: Arc<Path>) -> Self {
        Self { path, idle: Mutex::new(Vec::new()), permits: Semaphore::new(CONNECTIONS_MAX) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Connection) -> Answer<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.clone();
        // The semaphore is never closed, so a permit always comes.
        let _permit = self.permits.acquire().await;
        match tokio::task::spawn_blocking(move || readers.ask_now(question)).await {
            Ok(answer) => answer,
            Err(e) => Err(StoreError::unavailable(format!("a question to the archive was interrupted: {e}"))),
        }
    }

    fn ask_now<T>(&self, question: impl FnOnce(&Connection) -> Answer<T>) -> Result<T, StoreError> {
        let conn = self.take().map_err(|e| cannot_read(&self.path, &e))?;
        let answer = question(&conn);
        self.give_back(conn);
        answer.map_err(|unread| match unread {
            Unread::Sqlite(e) => cannot_read(&self.path, &e),
            Unread::Store(e) => e,
        })
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        // A separate statement: the guard must not be held while a connection is opened.
        let idle = self.idle.lock().pop();
        idle.map_or_else(|| connect(&self.path, OpenMode::Read), Ok)
    }

    fn give_back(&self, conn: Connection) {
        let mut idle = self.idle.lock();
        // A query whose caller was dropped may still be running on a connection.
        if idle.len() < CONNECTIONS_MAX {
            idle.push(conn);
        }
    }
}

pub(super) fn list<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Answer<T>,
) -> Answer<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

pub(super) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Answer<T>,
) -> Answer<Option<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// A limit as SQLite's `i64`.
pub(super) fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
