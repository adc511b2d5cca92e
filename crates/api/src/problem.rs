//! Problem documents, in the form that clients read.

use serde::{Deserialize, Serialize};

/// A problem document (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// A stable identifier for programs.
    pub code: String,
    /// A sentence for humans.
    pub detail: String,
    /// How to solve the problem.
    #[serde(default)]
    pub hint: Option<String>,
    /// All errors in a definition, an input or a patch.
    #[serde(default)]
    pub problems: Vec<ProblemPlace>,
    /// The id of the operation whose outcome is unknown.
    #[serde(default)]
    pub operation: Option<String>,
}

/// One error in a document, and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemPlace {
    pub message: String,
    #[serde(default)]
    pub hint: Option<String>,
    /// The place in the document, such as `nodes.fetch.retry.max`.
    #[serde(default)]
    pub path: String,
}
