//! What is no longer kept, and who holds on to payloads of the CAS.

use std::collections::HashSet;

use rusqlite::{Connection, params};
use switchyard_core::{Hash, Payload, Timestamp};
use switchyard_store::Retention;

use super::journal::Failure;
use super::read::{Answer, list};
use super::rows::parsed;

/// Runs that the policy does not keep, with the runs they started. `live` are runs that have not ended and the runs that
/// started them: a parent is kept for as long as a child of it goes on.
const DOOMED: &str = "CREATE TEMP TABLE doomed AS WITH RECURSIVE
    live (id, parent) AS (
        SELECT id, parent FROM runs WHERE status IN ('queued', 'running', 'paused', 'closing', 'compensating')
        UNION SELECT runs.id, runs.parent FROM runs JOIN live ON runs.id = live.parent),
    oldest (id) AS (
        SELECT id FROM runs
        WHERE ended_at IS NOT NULL AND parent IS NULL AND id NOT IN (SELECT id FROM live)
            AND (ended_at <= ?1 OR (ended_at, id) <= (
                SELECT ended_at, id FROM runs WHERE ended_at IS NOT NULL AND parent IS NULL
                ORDER BY ended_at DESC, id DESC LIMIT 1 OFFSET ?2))
        ORDER BY ended_at, id LIMIT ?3),
    doomed (id) AS (
        SELECT id FROM oldest
        UNION SELECT runs.id FROM runs JOIN doomed ON runs.parent = doomed.id)
    SELECT runs.id, runs.no, runs.parent FROM runs JOIN doomed USING (id)";

/// Answers how many runs were removed, without those they had started.
pub(super) fn pass(
    conn: &Connection,
    policy: &Retention,
    now: Timestamp,
    limit: usize,
) -> Result<usize, Failure> {
    let forgotten = now.minus(policy.payload_grace).as_millis();
    conn.execute("DELETE FROM payload_refs WHERE released_at <= ?1", [forgotten])?;
    let ended_by = policy.keep_for.map(|age| now.minus(age).as_millis());
    let keep = policy.keep_runs.map_or(i64::MAX, |runs| i64::try_from(runs).unwrap_or(i64::MAX));
    // Compared with NULL, nothing is too old; behind the largest offset, nothing is too many.
    conn.execute("DROP TABLE IF EXISTS temp.doomed", [])?;
    conn.execute(DOOMED, params![ended_by, keep, i64::try_from(limit).unwrap_or(i64::MAX)])?;
    conn.execute("DELETE FROM events WHERE run_no IN (SELECT no FROM doomed)", [])?;
    conn.execute("DELETE FROM run_operations WHERE run_no IN (SELECT no FROM doomed)", [])?;
    conn.execute("DELETE FROM approvals WHERE run IN (SELECT id FROM doomed)", [])?;
    conn.execute("DELETE FROM dead_letters WHERE run IN (SELECT id FROM doomed)", [])?;
    conn.execute(
        "UPDATE payload_refs SET released_at = ?1 WHERE holder IN (SELECT id FROM doomed)",
        [now.as_millis()],
    )?;
    conn.execute("DELETE FROM runs WHERE no IN (SELECT no FROM doomed)", [])?;
    let removed = "SELECT count(*) FROM doomed WHERE parent IS NULL";
    let removed = conn.query_row(removed, [], |row| row.get::<_, i64>(0))?;
    conn.execute("DROP TABLE temp.doomed", [])?;
    Ok(usize::try_from(removed).unwrap_or(0))
}

pub(super) fn held_payloads(conn: &Connection, of: &[Hash], since: Timestamp) -> Answer<HashSet<Hash>> {
    let hashes: Vec<String> = of.iter().map(ToString::to_string).collect();
    let hashes = serde_json::Value::from(hashes).to_string();
    let sql = "SELECT DISTINCT hash FROM payload_refs
               WHERE hash IN (SELECT value FROM json_each(?1)) AND (released_at IS NULL OR released_at > ?2)";
    let held = list(conn, sql, params![hashes, since.as_millis()], |row| parsed(row, "hash"))?;
    Ok(held.into_iter().collect())
}

/// Payloads that are still mentioned, and what mentions them.
pub(super) fn payload_holders(conn: &Connection) -> Answer<Vec<(Hash, String)>> {
    let sql = "SELECT hash, holder FROM payload_refs WHERE released_at IS NULL";
    list(conn, sql, [], |row| Ok((parsed(row, "hash")?, row.get("holder")?)))
}

/// Records that a payload is mentioned. Inline payloads need no record.
pub(super) fn hold(conn: &Connection, payload: &Payload, holder: &str) -> rusqlite::Result<()> {
    let Payload::Cas(reference) = payload else { return Ok(()) };
    conn.prepare_cached(
        "INSERT INTO payload_refs (hash, holder) VALUES (?1, ?2)
         ON CONFLICT DO UPDATE SET released_at = NULL",
    )?
    .execute(params![reference.hash.to_string(), holder])?;
    Ok(())
}

/// A remembered result is let go when it expires.
pub(super) fn hold_until(conn: &Connection, payload: &Payload, until: Timestamp) -> rusqlite::Result<()> {
    let Payload::Cas(reference) = payload else { return Ok(()) };
    conn.prepare_cached(
        "INSERT INTO payload_refs (hash, holder, released_at) VALUES (?1, 'cache', ?2)
         ON CONFLICT DO UPDATE SET released_at = max(released_at, excluded.released_at)",
    )?
    .execute(params![reference.hash.to_string(), until.as_millis()])?;
    Ok(())
}

/// Who holds on to a schedule's input.
pub(super) fn schedule_holder(name: &str) -> String {
    format!("schedule/{name}")
}

pub(super) fn let_go(conn: &Connection, holder: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM payload_refs WHERE holder = ?1")?.execute([holder])?;
    Ok(())
}
