//! Dead letters. Those of nodes are projected from events, the others are written directly.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::RunId;
use switchyard_store::{DeadKind, DeadLetter, DeadLetterGroup, DeadLetters, Purge, StoreError};

use super::SqliteArchive;
use super::readers::{Answer, at_most, list, one};
use super::rows::{maybe, moment};
use super::work::{Failure, Work};

const COLUMNS: &str = "id, kind, run, node, seq, reason, signal, excerpt, at";
/// Columns of a list. Signals and excerpts are left out, because they may be large.
const LISTED: &str = "id, kind, run, node, seq, reason, NULL AS signal, NULL AS excerpt, at";

const GROUPS: &str = "SELECT kind, node, reason, count(*) AS letters, min(at) AS first_at, max(at) AS last_at, max(id) AS example
    FROM dead_letters GROUP BY kind, node, reason ORDER BY letters DESC, last_at DESC, reason LIMIT ?1";

#[async_trait]
impl DeadLetters for SqliteArchive {
    async fn bury(&self, letter: DeadLetter) -> Result<(), StoreError> {
        self.write(Work::Bury(Box::new(letter))).await.map(drop)
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError> {
        self.readers.ask(move |conn| newest(conn, limit)).await
    }

    async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, StoreError> {
        self.readers.ask(move |conn| list(conn, GROUPS, [at_most(limit)], group)).await
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>, StoreError> {
        let id = id.to_owned();
        self.readers.ask(move |conn| by_id(conn, &id)).await
    }
}

pub(super) fn bury(conn: &Connection, letter: &DeadLetter) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO dead_letters (id, kind, run, node, seq, reason, signal, excerpt, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, at = excluded.at",
    )?
    .execute(params![
        letter.id,
        letter.kind.as_str(),
        letter.run_id.map(|run| run.to_string()),
        letter.node,
        letter.seq.map(u64::cast_signed),
        letter.reason,
        letter.signal,
        letter.excerpt,
        letter.at.as_millis(),
    ])?;
    Ok(())
}

/// Removes the dead letters of nodes that start over.
pub(super) fn revive(conn: &Connection, run: RunId, nodes: &[Arc<str>]) -> Result<(), Failure> {
    let mut gone = conn.prepare_cached("DELETE FROM dead_letters WHERE run = ?1 AND node = ?2")?;
    for node in nodes {
        gone.execute(params![run.to_string(), node])?;
    }
    Ok(())
}

pub(super) fn purge(conn: &Connection, which: &Purge) -> Result<usize, Failure> {
    Ok(match which {
        Purge::One(id) => conn.execute("DELETE FROM dead_letters WHERE id = ?1", [id])?,
        Purge::Seen(id, at) => {
            conn.execute("DELETE FROM dead_letters WHERE id = ?1 AND at = ?2", params![id, at.as_millis()])?
        }
        Purge::Before(at) => conn.execute("DELETE FROM dead_letters WHERE at < ?1", [at.as_millis()])?,
        Purge::All => conn.execute("DELETE FROM dead_letters", [])?,
    })
}

fn newest(conn: &Connection, limit: usize) -> Answer<Vec<DeadLetter>> {
    let sql = format!("SELECT {LISTED} FROM dead_letters ORDER BY at DESC, no DESC LIMIT ?1");
    list(conn, &sql, [at_most(limit)], record)
}

fn by_id(conn: &Connection, id: &str) -> Answer<Option<DeadLetter>> {
    one(conn, &format!("SELECT {COLUMNS} FROM dead_letters WHERE id = ?1"), [id], record)
}

fn record(row: &Row<'_>) -> Answer<DeadLetter> {
    let kind = maybe(row, "kind", |word: String| DeadKind::from_word(&word))?;
    Ok(DeadLetter {
        id: row.get("id")?,
        kind: kind.unwrap_or(DeadKind::Task),
        run_id: maybe(row, "run", |text: String| text.parse::<RunId>().ok())?,
        node: row.get("node")?,
        seq: row.get::<_, Option<i64>>("seq")?.map(i64::cast_unsigned),
        reason: row.get("reason")?,
        signal: row.get("signal")?,
        excerpt: row.get("excerpt")?,
        at: moment(row, "at")?,
    })
}

fn group(row: &Row<'_>) -> Answer<DeadLetterGroup> {
    let kind = maybe(row, "kind", |word: String| DeadKind::from_word(&word))?;
    Ok(DeadLetterGroup {
        kind: kind.unwrap_or(DeadKind::Task),
        node: row.get("node")?,
        reason: row.get("reason")?,
        letters: row.get::<_, i64>("letters")?.cast_unsigned(),
        first_at: moment(row, "first_at")?,
        last_at: moment(row, "last_at")?,
        example: row.get("example")?,
    })
}
