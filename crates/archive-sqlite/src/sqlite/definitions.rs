//! Definitions by their hash.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use switchyard_core::Hash;
use switchyard_store::{Definitions, StoreError};

use super::SqliteArchive;
use super::readers::Answer;
use super::work::Work;

#[async_trait]
impl Definitions for SqliteArchive {
    async fn put_definition(&self, hash: Hash, canonical: Arc<str>) -> Result<(), StoreError> {
        // The same workflow is submitted again and again: a lookup costs less than a disk sync.
        if self.readers.ask(move |conn| has(conn, hash)).await? {
            return Ok(());
        }
        self.write(Work::Definition { hash, canonical }).await.map(drop)
    }

    async fn definition(&self, hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
        self.readers.ask(move |conn| by_hash(conn, hash)).await
    }
}

pub(super) fn put(conn: &Connection, hash: Hash, canonical: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO definitions (hash, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![hash.to_string(), canonical])?;
    Ok(())
}

fn has(conn: &Connection, hash: Hash) -> Answer<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM definitions WHERE hash = ?1")?.exists([hash.to_string()])?)
}

fn by_hash(conn: &Connection, hash: Hash) -> Answer<Option<Arc<str>>> {
    let mut statement = conn.prepare_cached("SELECT body FROM definitions WHERE hash = ?1")?;
    Ok(statement.query_row([hash.to_string()], |row| row.get(0)).optional()?)
}
