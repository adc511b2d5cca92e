//! Checks what a schema may contain: references within itself, patterns of a bounded size, one draft.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::document::{Document, Holds, Pattern, holds};
use super::{full, report};
use crate::expr;
use crate::problem::{At, Problems, Step};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The largest compiled pattern, in bytes of memory.
pub(super) const PATTERN_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Walks the whole schema; problems go to `problems`.
pub(super) fn check(schema: &Value, at: &At<'_>, problems: &mut Problems) -> Document {
    let document = Document { root: schema.clone(), anchors: HashMap::new(), patterns: HashMap::new() };
    let mut check = Check { document, problems, pointers: HashSet::new(), references: Vec::new() };
    check.schema(schema, "", at);
    check.references();
    check.document
}

struct Check<'a> {
    document: Document,
    problems: &'a mut Problems,
    /// The JSON Pointers of every subschema.
    pointers: HashSet<String>,
    /// The references, with the place of each.
    references: Vec<(String, Vec<Step>)>,
}

impl Check<'_> {
    fn schema(&mut self, schema: &Value, pointer: &str, at: &At<'_>) {
        self.pointers.insert(pointer.to_owned());
        let Value::Object(map) = schema else { return };
        for (keyword, value) in map {
            let at = &at.key(keyword);
            self.keyword(keyword, value, pointer, at);
            if let Some(holds) = holds(keyword) {
                self.inside(holds, value, &format!("{pointer}/{keyword}"), at);
            }
        }
        if let Some(Value::Object(properties)) = map.get("patternProperties") {
            self.pattern_names(properties, &at.key("patternProperties"));
        }
    }

    fn inside(&mut self, holds: Holds, value: &Value, pointer: &str, at: &At<'_>) {
        match (holds, value) {
            (Holds::Schema, schema) => self.schema(schema, pointer, at),
            (Holds::List, Value::Array(list)) => {
                for (index, schema) in list.iter().enumerate() {
                    self.schema(schema, &format!("{pointer}/{index}"), &at.index(index));
                }
            }
            (Holds::Map, Value::Object(map)) => {
                for (name, schema) in map {
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    self.schema(schema, &format!("{pointer}/{escaped}"), &at.key(name));
                }
            }
            // The meta-schema reports any other value.
            _ => {}
        }
    }

    fn keyword(&mut self, keyword: &str, value: &Value, pointer: &str, at: &At<'_>) {
        let Value::String(text) = value else { return };
        match keyword {
            "$ref" | "$dynamicRef" => self.reference(keyword, text, at),
            "$anchor" | "$dynamicAnchor" => {
                self.document.anchors.insert(text.clone(), pointer.to_owned());
            }
            "$id" if !pointer.is_empty() => {
                let hint = "refer to it as `#/$defs/…`, without an `$id`".to_owned();
                self.problems.add(at, "an `$id` inside the schema is not supported", Some(hint));
            }
            "$schema" if text.trim_end_matches('#') != DRAFT => {
                let hint = format!("remove it, or write `{DRAFT}`");
                self.problems.add(at, format!("`{}` is not the draft 2020-12", shorten(text)), Some(hint));
            }
            "pattern" => self.pattern(text, at),
            _ => {}
        }
    }

    fn reference(&mut self, keyword: &str, text: &str, at: &At<'_>) {
        if !text.starts_with('#') {
            let message =
                format!("`{keyword}: {}` leads outside of the schema; nothing is loaded", shorten(text));
            let hint = "copy what it leads to into `$defs` and refer to it as `#/$defs/…`".to_owned();
            self.problems.add(at, message, Some(hint));
        } else if text.contains('%') {
            let hint = "give what it leads to a plain name".to_owned();
            self.problems.add(at, format!("`%` in `{keyword}` is not supported"), Some(hint));
        } else {
            self.references.push((text.to_owned(), at.steps()));
        }
    }

    /// Checks the references once every anchor is known.
    fn references(&mut self) {
        for (reference, steps) in &self.references {
            let found = self.document.pointer(reference);
            if !found.is_some_and(|pointer| self.pointers.contains(&pointer)) {
                let message = format!("`{}` leads to no schema", shorten(reference));
                let hint = "put the schema into `$defs` and refer to it as `#/$defs/<name>`".to_owned();
                self.problems.with_steps(steps, |at, problems| problems.add(at, message, Some(hint)));
            }
        }
    }

    fn pattern_names(&mut self, properties: &Map<String, Value>, at: &At<'_>) {
        for pattern in properties.keys() {
            self.pattern(pattern, &at.key(pattern));
        }
    }

    fn pattern(&mut self, source: &str, at: &At<'_>) {
        if self.document.patterns.contains_key(source) {
            return;
        }
        let regex = regex::RegexBuilder::new(source).size_limit(PATTERN_BYTES_MAX).build();
        match &regex {
            Ok(_) => {}
            Err(regex::Error::CompiledTooBig(_)) => {
                self.problems.add(at, format!("the pattern `{}` is too large", shorten(source)), None);
            }
            // The validator knows some forms that this engine does not; only a pattern that the validator refuses is a
            // mistake.
            Err(_) if full::build(&json!({"pattern": source})).is_ok() => {}
            Err(_) => {
                let message = format!("the pattern `{}` cannot be used", shorten(source));
                self.problems.add(at, message, Some(report::no_look_around()));
            }
        }
        let pattern = Pattern { regex: regex.ok(), places: expr::pattern_places(source) };
        self.document.patterns.insert(source.to_owned(), pattern);
    }
}

/// The part of a text that a message shows.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 80;
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() { shown + "…" } else { shown }
}
