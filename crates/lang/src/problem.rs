//! Collects problems, each with a path into the definition and not yet a position in a text.
//!
//! Decoding and compiling know nothing of lines and columns. `Problems::finish` looks the path up in the spanned tree
//! at the end, so a definition that came without text goes through the same code.

use std::fmt;

use switchyard_base::{Diagnostic, Diagnostics};

use crate::limits;
use crate::source::Tree;

/// A step of an owned path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// The current path, as a linked list on the stack: it costs nothing until a problem is added.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At<'a> {
    Root,
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
    /// A path stored earlier, for a problem found later.
    Remembered(&'a [Step]),
}

impl<'a> At<'a> {
    pub(crate) fn key(&'a self, key: &'a str) -> At<'a> {
        At::Key(self, key)
    }

    pub(crate) fn index(&'a self, index: usize) -> At<'a> {
        At::Index(self, index)
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = self;
        loop {
            match at {
                At::Root => break,
                At::Remembered(before) => {
                    steps.extend(before.iter().rev().cloned());
                    break;
                }
                At::Key(parent, key) => {
                    steps.push(Step::Key((*key).to_owned()));
                    at = parent;
                }
                At::Index(parent, index) => {
                    steps.push(Step::Index(*index));
                    at = parent;
                }
            }
        }
        steps.reverse();
        steps
    }
}

struct Shown<'a>(&'a [Step]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if i == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The target of a problem: a value, or the key it stands under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Value,
    Key,
}

#[derive(Debug)]
struct Problem {
    steps: Vec<Step>,
    target: Target,
    message: String,
    hint: Option<String>,
}

/// Problems so far. Beyond [`limits::PROBLEMS_MAX`] they are only counted.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
    unlisted: usize,
}

impl Problems {
    pub(crate) fn add(&mut self, at: &At<'_>, message: impl Into<String>, hint: Option<String>) {
        self.push(at, Target::Value, message.into(), hint);
    }

    /// Adds a problem that points at the key instead of the value.
    pub(crate) fn add_at_key(&mut self, at: &At<'_>, message: impl Into<String>, hint: Option<String>) {
        self.push(at, Target::Key, message.into(), hint);
    }

    fn push(&mut self, at: &At<'_>, target: Target, message: String, hint: Option<String>) {
        if self.is_full() {
            self.unlisted += 1;
            return;
        }
        self.list.push(Problem { steps: at.steps(), target, message, hint });
    }

    /// Whether another problem would only be counted, so that a hint is not worth computing.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= limits::PROBLEMS_MAX
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len() + self.unlisted
    }

    /// Reports at a stored path.
    pub(crate) fn with_steps(&mut self, steps: &[Step], report: impl FnOnce(&At<'_>, &mut Self)) {
        report(&At::Remembered(steps), self);
    }

    /// `Ok` if there are none; positions are looked up in `source` if there is one.
    pub(crate) fn finish(self, source: Option<(&Tree, &str)>) -> Result<(), Diagnostics> {
        let unlisted = self.unlisted;
        let mut list: Vec<_> = self.list.into_iter().map(|problem| problem.place(source)).collect();
        list.sort_by_key(|diagnostic| diagnostic.position.map(|position| position.offset));
        // Decoding and compiling can report the same mistake.
        list.dedup_by(|a, b| (&a.path, &a.message) == (&b.path, &b.message));
        if unlisted > 0 {
            list.push(Diagnostic::plain(format!("and {unlisted} more")));
        }
        match Diagnostics::from_list(list) {
            Some(diagnostics) => Err(diagnostics),
            None => Ok(()),
        }
    }
}

impl Problem {
    fn place(self, source: Option<(&Tree, &str)>) -> Diagnostic {
        let position = source.map(|(tree, text)| tree.find(&self.steps, self.target).in_text(text));
        Diagnostic { message: self.message, hint: self.hint, path: Shown(&self.steps).to_string(), position }
    }
}
