//! The WHERE clause of a filter.

use tokio_postgres::types::ToSql;

use crate::pool::Param;

/// The conditions that a filter has.
#[derive(Default)]
pub(super) struct Wheres {
    pub(super) clauses: Vec<String>,
    values: Vec<String>,
}

impl Wheres {
    /// Adds a condition, if there is a value. `comparison` is a column and an operator.
    pub(super) fn add(&mut self, comparison: &str, value: Option<String>) {
        if let Some(value) = value {
            self.values.push(value);
            self.clauses.push(format!("{comparison} ${}", self.values.len()));
        }
    }

    /// Adds a condition with text after its value, if there is a value.
    pub(super) fn add_in(&mut self, before: &str, value: Option<String>, after: &str) {
        if let Some(value) = value {
            self.values.push(value);
            self.clauses.push(format!("{before}${}{after}", self.values.len()));
        }
    }

    /// Extends the condition that was added last.
    pub(super) fn add_to_last(&mut self, comparison: &str, value: String, after: &str) {
        self.values.push(value);
        if let Some(last) = self.clauses.last_mut() {
            last.push_str(&format!("{comparison} ${}{after}", self.values.len()));
        }
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        self.values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
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
