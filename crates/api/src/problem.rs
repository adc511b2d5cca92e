//! Why a request was not carried out, as a client reads it.

use serde::{Deserialize, Serialize};

/// A problem document (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// A stable word for programs.
    pub code: String,
    /// A sentence for people.
    pub detail: String,
    /// What to do about it.
    #[serde(default)]
    pub hint: Option<String>,
    /// What is wrong with a definition, an input or a patch: everything at once.
    #[serde(default)]
    pub problems: Vec<ProblemPlace>,
    /// The operation whose outcome is not known.
    #[serde(default)]
    pub operation: Option<String>,
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemPlace {
    pub message: String,
    #[serde(default)]
    pub hint: Option<String>,
    /// Where in the document, such as `nodes.fetch.retry.max`.
    #[serde(default)]
    pub path: String,
}
