//! Problems found in a text, such as a definition or a settings file: message, position and hint.

use std::fmt;

/// A position in a text. Lines and columns count from 1, columns in characters, offset and length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
    pub offset: usize,
    pub len: usize,
}

/// One problem in a text.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The path of the field in the document, such as `nodes.fetch.retry.max`; empty for the whole document.
    pub path: String,
    /// The position in the source text, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// All problems of one text: at least one.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostics {
    /// The name of the text, as the caller gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn one(diagnostic: Diagnostic) -> Self {
        Self { file: None, list: vec![diagnostic] }
    }

    /// `None` if the list is empty.
    pub fn from_list(list: Vec<Diagnostic>) -> Option<Self> {
        (!list.is_empty()).then_some(Self { file: None, list })
    }

    pub fn in_file(mut self, file: &str) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    pub fn first(&self) -> &Diagnostic {
        &self.list[0]
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Always false; it exists because clippy expects it beside `len`.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Diagnostic {
    /// A diagnostic of the whole document, without position and hint.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, path: String::new(), position: None }
    }

    fn write(&self, file: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = file {
            write!(f, "{file}:")?;
        }
        match self.position {
            Some(Position { line, column, .. }) => write!(f, "{line}:{column}: ")?,
            None if !self.path.is_empty() => write!(f, "{}: ", self.path)?,
            None if file.is_some() => f.write_str(" ")?,
            None => {}
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(None, f)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            diagnostic.write(self.file.as_deref(), f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
