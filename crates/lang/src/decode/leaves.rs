//! Decoders of single values.

use std::num::NonZeroU32;

use indexmap::IndexMap;
use serde_json::Value;
use switchyard_base::{HumanDuration, suggest};

use crate::problem::{At, Problems};
use crate::source::{Data, Key, Tree};

fn expected<T>(what: &str, tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<T> {
    problems.add(at, format!("expected {what}, found {}", tree.kind()), None);
    None
}

pub(super) fn string(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<String> {
    match &tree.data {
        Data::String(text) => Some(text.clone()),
        _ => expected("a string", tree, at, problems),
    }
}

/// A string, or an unquoted number or boolean: `[sleep, 5]`.
pub(super) fn word(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<String> {
    match &tree.data {
        Data::Number(number) => Some(number.to_string()),
        Data::Bool(value) => Some(value.to_string()),
        _ => string(tree, at, problems),
    }
}

pub(super) fn boolean(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<bool> {
    match tree.data {
        Data::Bool(value) => Some(value),
        _ => expected("true or false", tree, at, problems),
    }
}

pub(super) fn template(tree: &Tree, _: &At<'_>, _: &mut Problems) -> Option<Value> {
    Some(tree.to_value())
}

pub(super) fn map<'t>(tree: &'t Tree, at: &At<'_>, problems: &mut Problems) -> Option<&'t [(Key, Tree)]> {
    match &tree.data {
        Data::Map(entries) => Some(entries),
        _ => expected("a map", tree, at, problems),
    }
}

pub(super) fn templates(
    tree: &Tree,
    at: &At<'_>,
    problems: &mut Problems,
) -> Option<IndexMap<String, Value>> {
    let entries = map(tree, at, problems)?;
    Some(entries.iter().map(|(key, tree)| (key.text.clone(), tree.to_value())).collect())
}

pub(super) fn duration(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<HumanDuration> {
    let text = match &tree.data {
        Data::String(text) => text.clone(),
        Data::Number(number) => number.to_string(),
        _ => return expected("a duration such as `30s`", tree, at, problems),
    };
    match text.parse() {
        Ok(duration) => Some(duration),
        Err(error) => {
            problems.add(at, error.message, Some(error.hint));
            None
        }
    }
}

pub(super) fn count(min: u64, max: u64) -> impl FnOnce(&Tree, &At<'_>, &mut Problems) -> Option<u64> {
    move |tree, at, problems| {
        let Data::Number(number) = &tree.data else { return expected("a number", tree, at, problems) };
        let value = number.as_u64().filter(|value| (min..=max).contains(value));
        if value.is_none() {
            problems.add(at, format!("expected a whole number from {min} to {max}, found {number}"), None);
        }
        value
    }
}

pub(super) fn positive(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<NonZeroU32> {
    let value = count(1, u32::MAX.into())(tree, at, problems)?;
    NonZeroU32::new(u32::try_from(value).ok()?)
}

pub(super) fn list_of<T>(
    decode: fn(&Tree, &At<'_>, &mut Problems) -> Option<T>,
) -> impl FnOnce(&Tree, &At<'_>, &mut Problems) -> Option<Vec<T>> {
    move |tree, at, problems| {
        let Data::List(list) = &tree.data else { return expected("a list", tree, at, problems) };
        let decoded =
            list.iter().enumerate().filter_map(|(index, tree)| decode(tree, &at.index(index), problems));
        Some(decoded.collect())
    }
}

/// Decodes one of the given words.
pub(super) fn choice<T: Clone>(
    choices: &[(&'static str, T)],
) -> impl FnOnce(&Tree, &At<'_>, &mut Problems) -> Option<T> {
    move |tree, at, problems| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let Data::String(text) = &tree.data else {
            return expected(&format!("one of {}", words.join(", ")), tree, at, problems);
        };
        let found = choices.iter().find(|(word, _)| word == text).map(|(_, value)| value.clone());
        if found.is_none() {
            let hint = suggest::hint(text, &words, "expected one of");
            problems.add(at, format!("unknown value `{text}`"), hint);
        }
        found
    }
}
