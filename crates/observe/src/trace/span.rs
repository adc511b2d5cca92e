//! A span: one operation with its start and end.

use std::sync::Arc;

use switchyard_core::{SpanId, Timestamp, TraceId};

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub state: Option<Arc<str>>,
    pub name: String,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// The error, if the operation failed.
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    Text(String),
    Number(i64),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u32> for Attribute {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}
