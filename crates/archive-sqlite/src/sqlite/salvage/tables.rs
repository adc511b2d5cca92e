//! Copies the tables that are not projected from events: workflows, schedules, keys, and tables of later releases.
//! They are small; SQLite reads them row by row from a copy of the database, until the first error.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use switchyard_store::StoreError;

use super::Pages;
use crate::private;
use crate::sqlite::error::cannot_open;
use crate::sqlite::{OpenMode, Options, connect};

/// Tables that are rebuilt from events and definitions, and the cache, which may be lost.
const NOT_COPIED: [&str; 6] = ["events", "runs", "run_labels", "approvals", "definitions", "cache"];

/// Tables that are partly projected from events, with the condition for the rows to copy.
const COPIED_WHERE: [(&str, &str); 2] =
    [("dead_letters", "kind <> 'task'"), ("payload_refs", "holder LIKE 'schedule/%'")];

/// The offset of the journal mode in the file header. 1: without a log.
const JOURNAL_AT: usize = 18;

/// Copies the tables into a database that has the newest schema and the histories. Existing rows stay: they are
/// projected from events. Returns the tables that could not be copied, with the reason.
pub(crate) fn copy_tables(pages: &Pages, into: &Path) -> Result<Vec<(String, String)>, StoreError> {
    let folder = into.parent().unwrap_or(into);
    let copy = folder.join("switchyard.db.old");
    let unwritten = |e: io::Error| StoreError::unavailable(format!("cannot write {}: {e}", copy.display()));
    write_copy(pages, private::create(&copy).map_err(unwritten)?).map_err(unwritten)?;
    let copied = copy_from(&copy, into);
    fs::remove_file(&copy).map_err(unwritten)?;
    copied
}

/// Writes the newest version of every page into one file without a log. An unreadable page is written as zeros.
fn write_copy(pages: &Pages, file: File) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, file);
    for page in 1..=pages.count {
        let mut bytes = pages.read(page).unwrap_or_else(|_| vec![0; pages.page_bytes()]);
        if page == 1 {
            bytes[JOURNAL_AT..JOURNAL_AT + 2].fill(1);
        }
        file.write_all(&bytes)?;
    }
    file.flush()
}

fn copy_from(copy: &Path, into: &Path) -> Result<Vec<(String, String)>, StoreError> {
    let conn = connect(into, OpenMode::Write(&Options::default())).map_err(|e| cannot_open(into, &e))?;
    let ours = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut tables = names(&conn, ours).map_err(|e| cannot_open(into, &e))?;
    tables.retain(|table| !NOT_COPIED.contains(&table.as_str()));
    // If the first page is unreadable, there are no tables.
    if let Err(error) = conn.execute("ATTACH ?1 AS old", [copy.display().to_string()]) {
        return Ok(tables.into_iter().map(|table| (table, error.to_string())).collect());
    }
    let mut faults = Vec::new();
    for table in tables {
        if let Err(error) = copy_table(&conn, &table) {
            faults.push((table, error.to_string()));
        }
    }
    Ok(faults)
}

fn copy_table(conn: &Connection, table: &str) -> rusqlite::Result<()> {
    let columns =
        |schema: &str| names(conn, &format!("SELECT name FROM pragma_table_info('{table}', '{schema}')"));
    let old = columns("old")?;
    let shared: Vec<String> = columns("main")?.into_iter().filter(|name| old.contains(name)).collect();
    if shared.is_empty() {
        // The table is newer than the damaged file.
        return Ok(());
    }
    let only = COPIED_WHERE.iter().find(|(name, _)| *name == table).map_or("true", |(_, only)| only);
    let (list, marks) = (shared.join(", "), vec!["?"; shared.len()].join(", "));
    let mut add = conn.prepare(&format!("INSERT OR IGNORE INTO main.{table} ({list}) VALUES ({marks})"))?;
    let mut read = conn.prepare(&format!("SELECT {list} FROM old.{table} WHERE {only}"))?;
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        let values = (0..shared.len()).map(|n| row.get::<_, Value>(n));
        add.execute(params_from_iter(values.collect::<rusqlite::Result<Vec<_>>>()?))?;
    }
    Ok(())
}

fn names(conn: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    conn.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}
