//! Takes the fields of a map one by one; fields left over are unknown.

use serde_json::Value;
use switchyard_base::suggest;

use crate::problem::{At, Problems};
use crate::source::{Data, Key, Tree};

pub(super) struct Fields<'a> {
    entries: &'a [(Key, Tree)],
    at: &'a At<'a>,
    problems: &'a mut Problems,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Opens a map. `None`, with a problem, if the tree is not a map.
    pub(super) fn open(tree: &'a Tree, at: &'a At<'a>, problems: &'a mut Problems) -> Option<Self> {
        let Data::Map(entries) = &tree.data else {
            problems.add(at, format!("expected a map, found {}", tree.kind()), None);
            return None;
        };
        Some(Self { entries, at, problems, known: Vec::with_capacity(24) })
    }

    fn find(&mut self, name: &'static str) -> Option<&'a Tree> {
        self.known.push(name);
        self.entries.iter().find(|(key, _)| key.text == name).map(|(_, tree)| tree)
    }

    /// A field that is decoded even if it is null.
    pub(super) fn given<T>(
        &mut self,
        name: &'static str,
        decode: impl FnOnce(&Tree, &At<'_>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let tree = self.find(name)?;
        decode(tree, &self.at.key(name), self.problems)
    }

    /// A field that may be missing; null is the same as missing.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        decode: impl FnOnce(&Tree, &At<'_>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let tree = self.find(name)?;
        if tree.data == Data::Null {
            return None;
        }
        decode(tree, &self.at.key(name), self.problems)
    }

    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        decode: impl FnOnce(&Tree, &At<'_>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        if !self.has(name) {
            self.known.push(name);
            let slip = self.entries.iter().map(|(key, _)| key.text.as_str());
            let slip = slip.into_iter().find(|text| suggest::nearest(text, [name]).is_some());
            let hint = slip.map(|slip| format!("did you mean `{name}` by `{slip}`?"));
            self.problems.add_at_key(self.at, format!("missing field `{name}`"), hint);
            return None;
        }
        self.optional(name, decode)
    }

    /// A field with any JSON; null is a value like others.
    pub(super) fn template(&mut self, name: &'static str) -> Option<Value> {
        self.find(name).map(Tree::to_value)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(key, tree)| key.text == name && tree.data != Data::Null)
    }

    pub(super) fn problem(&mut self, message: String, hint: Option<String>) {
        self.problems.add_at_key(self.at, message, hint);
    }

    pub(super) fn problem_at(&mut self, field: &str, message: String, hint: Option<String>) {
        self.problems.add(&self.at.key(field), message, hint);
    }

    /// Reports the fields that were not taken.
    pub(super) fn close(self) {
        self.close_with(|_| None);
    }

    pub(super) fn close_with(self, hint_for: impl Fn(&str) -> Option<String>) {
        for (key, _) in self.entries {
            if self.known.contains(&key.text.as_str()) {
                continue;
            }
            let hint =
                || hint_for(&key.text).or_else(|| suggest::hint(&key.text, &self.known, "known fields"));
            let hint = if self.problems.is_full() { None } else { hint() };
            self.problems.add_at_key(&self.at.key(&key.text), format!("unknown field `{}`", key.text), hint);
        }
    }

    /// Ignores the fields that were not taken.
    pub(super) fn leave(self) {}
}
