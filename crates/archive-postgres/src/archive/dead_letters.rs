//! Dead letters. Those of nodes are projected from events, the others are written directly.

use async_trait::async_trait;
use switchyard_store::{DeadKind, DeadLetter, DeadLetterGroup, DeadLetters, Purge, StoreError};
use tokio_postgres::{Error, Row, Transaction};

use super::PostgresArchive;
use super::rows::{at_most, damaged, maybe_shared, moment, shared};
use crate::pool::Param;
use crate::text;

const COLUMNS: &str = "id, kind, run, node, seq, reason, signal, excerpt, at";
/// Columns of a list. Signals and excerpts are left out, because they may be large.
const LISTED: &str = "id, kind, run, node, seq, reason, NULL::text AS signal, NULL::text AS excerpt, at";

const GROUPS: &str = "SELECT kind, node, reason, count(*) AS letters, min(at) AS first_at, max(at) AS last_at, max(id) AS example
    FROM dead_letters GROUP BY kind, node, reason ORDER BY letters DESC, last_at DESC, reason COLLATE \"C\" LIMIT $1";

#[async_trait]
impl DeadLetters for PostgresArchive {
    async fn bury(&self, letter: DeadLetter) -> Result<(), StoreError> {
        let sql = "INSERT INTO dead_letters (id, kind, run, node, seq, reason, signal, excerpt, at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, at = excluded.at";
        let run = letter.run_id.map(|run| run.to_string());
        let (id, kind, seq) = (&*letter.id, letter.kind.as_str(), letter.seq.map(u64::cast_signed));
        let (node, signal) =
            (letter.node.as_deref().map(text::stored), letter.signal.as_deref().map(text::stored));
        let excerpt = letter.excerpt.as_deref().map(text::stored);
        let (reason, at) = (text::stored(&letter.reason), letter.at.as_millis());
        let params: [Param<'_>; 9] = [&id, &kind, &run, &node, &seq, &reason, &signal, &excerpt, &at];
        self.pool.change(sql, &params).await.map(drop)
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError> {
        let sql = format!("SELECT {LISTED} FROM dead_letters ORDER BY at DESC, no DESC LIMIT $1");
        self.pool.rows(&sql, &[&at_most(limit)]).await?.iter().map(record).collect()
    }

    async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, StoreError> {
        self.pool.rows(GROUPS, &[&at_most(limit)]).await?.iter().map(group).collect()
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM dead_letters WHERE id = $1");
        self.pool.row(&sql, &[&text::stored(id)]).await?.as_ref().map(record).transpose()
    }
}

pub(super) async fn purge(transaction: &Transaction<'_>, which: &Purge) -> Result<usize, Error> {
    let removed = match which {
        Purge::One(id) => {
            transaction.execute("DELETE FROM dead_letters WHERE id = $1", &[&text::stored(id)]).await?
        }
        Purge::Seen(id, at) => {
            let seen = "DELETE FROM dead_letters WHERE id = $1 AND at = $2";
            transaction.execute(seen, &[&text::stored(id), &at.as_millis()]).await?
        }
        Purge::Before(at) => {
            transaction.execute("DELETE FROM dead_letters WHERE at < $1", &[&at.as_millis()]).await?
        }
        Purge::All => transaction.execute("DELETE FROM dead_letters", &[]).await?,
    };
    Ok(usize::try_from(removed).unwrap_or(usize::MAX))
}

fn record(row: &Row) -> Result<DeadLetter, StoreError> {
    let run: Option<&str> = row.get("run");
    Ok(DeadLetter {
        id: shared(row, "id"),
        kind: DeadKind::from_word(row.get("kind")).ok_or_else(|| damaged("kind", row.get(0)))?,
        run_id: run.map(str::parse).transpose().map_err(|_| damaged("run", row.get(0)))?,
        node: maybe_shared(row, "node"),
        seq: row.get::<_, Option<i64>>("seq").map(i64::cast_unsigned),
        reason: shared(row, "reason"),
        signal: maybe_shared(row, "signal"),
        excerpt: maybe_shared(row, "excerpt"),
        at: moment(row, "at"),
    })
}

fn group(row: &Row) -> Result<DeadLetterGroup, StoreError> {
    Ok(DeadLetterGroup {
        kind: DeadKind::from_word(row.get("kind")).ok_or_else(|| damaged("kind", row.get("example")))?,
        node: maybe_shared(row, "node"),
        reason: shared(row, "reason"),
        letters: row.get::<_, i64>("letters").cast_unsigned(),
        first_at: moment(row, "first_at"),
        last_at: moment(row, "last_at"),
        example: shared(row, "example"),
    })
}
