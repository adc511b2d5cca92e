//! Findings about a store, for its operator.

use serde::Serialize;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Ok,
    /// The store works, but an operator should look at the finding.
    Warning,
    /// The store does not work, or data will be lost.
    Failed,
}

/// A check of a store and its finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub health: Health,
    pub found: String,
    /// What the operator should do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Check {
    pub fn ok(name: &'static str, found: impl ToString) -> Self {
        Self { name, health: Health::Ok, found: found.to_string(), advice: None }
    }

    pub fn warning(name: &'static str, found: impl ToString, advice: impl ToString) -> Self {
        let advice = Some(advice.to_string());
        Self { name, health: Health::Warning, found: found.to_string(), advice }
    }

    /// A failure whose finding says what to do.
    pub fn refused(name: &'static str, found: impl ToString) -> Self {
        Self { health: Health::Failed, ..Self::ok(name, found) }
    }

    pub fn failed(name: &'static str, found: impl ToString, advice: impl ToString) -> Self {
        Self { health: Health::Failed, ..Self::warning(name, found, advice) }
    }
}
