//! Parses text to a tree that records the position of every value.
//!
//! JSON is parsed as YAML, of which it is a subset. Only values that JSON can express are accepted: string keys, no
//! custom tags, no NaN; aliases are expanded within a budget.

use serde_json::{Map, Number, Value};
use switchyard_base::{Diagnostic, Diagnostics, Position};

use crate::limits;
use crate::problem::{Step, Target};

mod build;
mod scalar;

/// A stretch of text, in characters. `line` 0 means that there is no text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    line: usize,
    column: usize,
    index: usize,
    len: usize,
}

impl From<saphyr_parser::Span> for Span {
    fn from(span: saphyr_parser::Span) -> Self {
        let len = span.end.index().saturating_sub(span.start.index());
        Self { len, ..span.start.into() }
    }
}

impl From<saphyr_parser::Marker> for Span {
    fn from(marker: saphyr_parser::Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1, index: marker.index(), len: 0 }
    }
}

impl Span {
    /// The position in bytes. The parser counts characters and renderers want bytes; only reported spans are converted.
    pub(crate) fn in_text(self, text: &str) -> Position {
        if text.is_ascii() {
            let offset = self.index.min(text.len());
            let len = self.len.min(text.len() - offset);
            return Position { line: self.line, column: self.column, offset, len };
        }
        let mut bytes = text.char_indices().map(|(offset, _)| offset).skip(self.index);
        let offset = bytes.next().unwrap_or(text.len());
        let end = if self.len == 0 { offset } else { bytes.nth(self.len - 1).unwrap_or(text.len()) };
        Position { line: self.line, column: self.column, offset, len: end - offset }
    }
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tree {
    pub(crate) span: Span,
    pub(crate) data: Data,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Tree>),
    Map(Vec<(Key, Tree)>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Tree {
    /// Reads a definition text. `name` is only for the diagnostics.
    pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<(Self, String), Diagnostics> {
        let text = check_text(bytes).map_err(|diagnostic| Diagnostics::one(diagnostic).in_file(name))?;
        match build::build(text) {
            Ok(tree) => Ok((tree, text.to_owned())),
            Err(error) => Err(Diagnostics::one(error.in_text(text)).in_file(name)),
        }
    }

    /// A tree without positions, from JSON that is already parsed.
    pub(crate) fn from_value(value: Value) -> Result<Self, Diagnostics> {
        if deeper_than(&value, limits::NESTING_MAX) {
            return Err(Diagnostics::one(Diagnostic::plain(build::too_deep())));
        }
        Ok(Self::convert(value))
    }

    fn convert(value: Value) -> Self {
        let data = match value {
            Value::Null => Data::Null,
            Value::Bool(value) => Data::Bool(value),
            Value::Number(value) => Data::Number(value),
            Value::String(value) => Data::String(value),
            Value::Array(list) => Data::List(list.into_iter().map(Self::convert).collect()),
            Value::Object(map) => Data::Map(
                map.into_iter()
                    .map(|(text, value)| (Key { text, span: Span::default() }, Self::convert(value)))
                    .collect(),
            ),
        };
        Self { span: Span::default(), data }
    }

    pub(crate) fn into_value(self) -> Value {
        match self.data {
            Data::Null => Value::Null,
            Data::Bool(value) => Value::Bool(value),
            Data::Number(value) => Value::Number(value),
            Data::String(value) => Value::String(value),
            Data::List(list) => Value::Array(list.into_iter().map(Self::into_value).collect()),
            Data::Map(entries) => Value::Object(
                entries.into_iter().map(|(key, tree)| (key.text, tree.into_value())).collect::<Map<_, _>>(),
            ),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        self.clone().into_value()
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.data {
            Data::Null => "null",
            Data::Bool(_) => "a boolean",
            Data::Number(_) => "a number",
            Data::String(_) => "a string",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
        }
    }

    /// The span of a path, or of as much of it as exists: a missing field is reported where it should be.
    pub(crate) fn find(&self, steps: &[Step], target: Target) -> Span {
        let (mut tree, mut key_span) = (self, None);
        for step in steps {
            let next = match (&tree.data, step) {
                (Data::Map(entries), Step::Key(key)) => {
                    entries.iter().find(|(k, _)| k.text == *key).map(|(k, tree)| (Some(k.span), tree))
                }
                (Data::List(list), Step::Index(index)) => list.get(*index).map(|tree| (None, tree)),
                _ => None,
            };
            let Some(next) = next else {
                // A value inside is missing: the diagnostic points at the key above it.
                return key_span.unwrap_or(tree.span);
            };
            (key_span, tree) = next;
        }
        match target {
            Target::Key => key_span.unwrap_or(tree.span),
            Target::Value => tree.span,
        }
    }
}

/// Reads YAML or JSON that is not a definition: an input, the operations of a patch.
pub fn parse_value(name: &str, bytes: &[u8]) -> Result<Value, Diagnostics> {
    Ok(Tree::parse(name, bytes)?.0.into_value())
}

fn check_text(bytes: &[u8]) -> Result<&str, Diagnostic> {
    if bytes.len() > limits::DEFINITION_BYTES_MAX {
        let message = format!(
            "the definition has {} bytes, more than the limit of {}",
            bytes.len(),
            limits::DEFINITION_BYTES_MAX
        );
        return Err(hinted(message, "move large data into the run's input"));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("the definition is not UTF-8: bad byte at offset {}", error.valid_up_to());
        hinted(message, "save the file with UTF-8 encoding")
    })
}

fn hinted(message: String, hint: &str) -> Diagnostic {
    Diagnostic { hint: Some(hint.to_owned()), ..Diagnostic::plain(message) }
}

fn deeper_than(value: &Value, limit: usize) -> bool {
    if limit == 0 {
        return value.is_array() || value.is_object();
    }
    match value {
        Value::Array(list) => list.iter().any(|value| deeper_than(value, limit - 1)),
        Value::Object(map) => map.values().any(|value| deeper_than(value, limit - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
