//! Plain paths: `input.a["b"][0]`, looked up without CEL.

use serde_json::Value;

use super::{Refs, Scope, Vars};

#[derive(Debug, PartialEq)]
pub(super) struct Path {
    root: Root,
    segments: Vec<Segment>,
}

#[derive(Debug, PartialEq)]
enum Root {
    Var(&'static str),
    Node(String),
}

#[derive(Debug, PartialEq)]
enum Segment {
    Key(String),
    Index(usize),
}

impl Path {
    /// Parses a plain path. `None` if the text is anything but a path from an allowed variable; CEL then reports any
    /// mistake.
    pub(super) fn parse(source: &str, allowed: Vars) -> Option<(Self, Refs)> {
        let (root, rest) = identifier(source)?;
        let root = *allowed.iter().find(|name| **name == root)?;
        let mut segments = segments(rest)?;
        let mut refs = Refs { paths: vec![keys(root, &segments)], ..Refs::default() };
        let root = if root == "nodes" {
            if segments.is_empty() {
                return None;
            }
            let Segment::Key(id) = segments.remove(0) else { return None };
            refs.nodes.push(id.clone());
            Root::Node(id)
        } else {
            if root == "secrets" {
                // CEL reports the mistake in any other use.
                let Some(Segment::Key(name)) = segments.first() else { return None };
                refs.secrets.push(name.clone());
            }
            refs.vars.push(root);
            Root::Var(root)
        };
        Some((Self { root, segments }, refs))
    }

    pub(super) fn lookup<'a>(&self, scope: &'a Scope) -> Result<&'a Value, String> {
        let mut value = match &self.root {
            Root::Var(name) => scope.var(name)?,
            Root::Node(id) => scope.node(id)?,
        };
        for segment in &self.segments {
            value = segment.of(value)?;
        }
        Ok(value)
    }
}

impl Segment {
    fn of<'a>(&self, value: &'a Value) -> Result<&'a Value, String> {
        match (self, value) {
            (Self::Key(key), Value::Object(map)) => {
                map.get(key).ok_or_else(|| format!("no such key: `{key}`"))
            }
            (Self::Index(index), Value::Array(list)) => list.get(*index).ok_or_else(|| {
                format!("index {index} is out of bounds: the list has {} elements", list.len())
            }),
            (Self::Key(key), other) => Err(format!("no such key: `{key}` (of {})", super::kind(other))),
            (Self::Index(index), other) => Err(format!("no element {index} of {}", super::kind(other))),
        }
    }
}

/// The keys of a path, up to its first index.
fn keys(root: &str, segments: &[Segment]) -> Vec<String> {
    let keys = segments.iter().map_while(|segment| match segment {
        Segment::Key(key) => Some(key.clone()),
        Segment::Index(_) => None,
    });
    std::iter::once(root.to_owned()).chain(keys).collect()
}

fn identifier(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let (name, rest) = text.split_at(end);
    (!name.is_empty() && !name.as_bytes()[0].is_ascii_digit()).then_some((name, rest))
}

fn segments(mut rest: &str) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let segment;
        (segment, rest) = if let Some(selected) = rest.strip_prefix('.') {
            let (name, rest) = identifier(selected)?;
            (Segment::Key(name.to_owned()), rest)
        } else {
            let (inside, rest) = bracket(rest.strip_prefix('[')?)?;
            (inside, rest)
        };
        segments.push(segment);
    }
    Some(segments)
}

/// Parses a string without escapes or a small number; returns it with the rest after the `]`.
fn bracket(text: &str) -> Option<(Segment, &str)> {
    let quote = text.chars().next()?;
    if quote == '"' || quote == '\'' {
        let (key, rest) = text[1..].split_once(quote)?;
        let plain = !key.contains(['\\', '\n', '\r']);
        return plain.then_some(Segment::Key(key.to_owned())).zip(rest.strip_prefix(']'));
    }
    let (digits, rest) = text.split_once(']')?;
    let number = !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|b| b.is_ascii_digit());
    number.then(|| digits.parse().ok().map(Segment::Index))?.map(|segment| (segment, rest))
}
