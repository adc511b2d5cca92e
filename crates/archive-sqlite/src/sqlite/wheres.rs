//! The WHERE clause of a filter.

use rusqlite::{Params, ToSql};

/// The conditions that a filter has. A condition without a value is left out, because SQLite uses an index only if
/// the statement compares its column.
#[derive(Default)]
pub(super) struct Wheres {
    pub(super) clauses: Vec<String>,
    values: Vec<Box<dyn ToSql>>,
}

impl Wheres {
    pub(super) fn push(&mut self, clause: &str, value: Box<dyn ToSql>) {
        self.clauses.push(clause.to_owned());
        self.values.push(value);
    }

    /// Adds a value for the clause that was pushed last.
    pub(super) fn value(&mut self, value: Box<dyn ToSql>) {
        self.values.push(value);
    }

    /// Adds a clause with a text value, if there is one.
    pub(super) fn compare(&mut self, clause: &str, value: Option<String>) {
        if let Some(value) = value {
            self.push(clause, Box::new(value));
        }
    }

    pub(super) fn number(&mut self, clause: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.push(clause, Box::new(value));
        }
    }

    pub(super) fn into_values(self) -> Vec<Box<dyn ToSql>> {
        self.values
    }

    pub(super) fn equal(&mut self, column: &str, value: Option<String>) {
        if let Some(value) = value {
            self.push(&format!("{column} = ?"), Box::new(value));
        }
    }

    pub(super) fn params(&self) -> impl Params + '_ {
        rusqlite::params_from_iter(self.values.iter().map(AsRef::as_ref))
    }
}

impl std::fmt::Display for Wheres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.clauses.is_empty() {
            return Ok(());
        }
        write!(f, "WHERE {}", self.clauses.join(" AND "))
    }
}
