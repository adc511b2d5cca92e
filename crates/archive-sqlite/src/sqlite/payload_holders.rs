//! Holders: the runs, schedules and cached results that refer to payloads of the CAS.

use std::collections::HashSet;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use switchyard_core::{Hash, Payload, Timestamp};
use switchyard_store::{PayloadHolders, StoreError};

use super::SqliteArchive;
use super::readers::{Answer, list};
use super::rows::parsed;

#[async_trait]
impl PayloadHolders for SqliteArchive {
    async fn held_payloads(&self, of: &[Hash], since: Timestamp) -> Result<HashSet<Hash>, StoreError> {
        let of = of.to_vec();
        self.readers.ask(move |conn| held(conn, &of, since)).await
    }
}

impl SqliteArchive {
    /// Every payload that this archive refers to, with its holder.
    pub(crate) async fn payload_holders(&self) -> Result<Vec<(Hash, String)>, StoreError> {
        self.readers.ask(all).await
    }
}

fn held(conn: &Connection, of: &[Hash], since: Timestamp) -> Answer<HashSet<Hash>> {
    let hashes: Vec<String> = of.iter().map(ToString::to_string).collect();
    let hashes = serde_json::Value::from(hashes).to_string();
    let sql = "SELECT DISTINCT hash FROM payload_refs
               WHERE hash IN (SELECT value FROM json_each(?1)) AND (released_at IS NULL OR released_at > ?2)";
    let held = list(conn, sql, params![hashes, since.as_millis()], |row| parsed(row, "hash"))?;
    Ok(held.into_iter().collect())
}

/// Payloads that are not released, with their holders.
fn all(conn: &Connection) -> Answer<Vec<(Hash, String)>> {
    let sql = "SELECT hash, holder FROM payload_refs WHERE released_at IS NULL";
    list(conn, sql, [], |row| Ok((parsed(row, "hash")?, row.get("holder")?)))
}

/// Records that a holder refers to a payload.
pub(super) fn hold(conn: &Connection, hash: Hash, holder: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO payload_refs (hash, holder) VALUES (?1, ?2)
         ON CONFLICT DO UPDATE SET released_at = NULL",
    )?
    .execute(params![hash.to_string(), holder])?;
    Ok(())
}

/// Records that a cached result refers to a payload until the result expires.
pub(super) fn hold_until(conn: &Connection, payload: &Payload, until: Timestamp) -> rusqlite::Result<()> {
    let Payload::Cas(reference) = payload else { return Ok(()) };
    conn.prepare_cached(
        "INSERT INTO payload_refs (hash, holder, released_at) VALUES (?1, 'cache', ?2)
         ON CONFLICT DO UPDATE SET released_at = max(released_at, excluded.released_at)",
    )?
    .execute(params![reference.hash.to_string(), until.as_millis()])?;
    Ok(())
}

/// The holder name of a schedule's input.
pub(super) fn schedule_holder(name: &str) -> String {
    format!("schedule/{name}")
}

pub(super) fn let_go(conn: &Connection, holder: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM payload_refs WHERE holder = ?1")?.execute([holder])?;
    Ok(())
}
