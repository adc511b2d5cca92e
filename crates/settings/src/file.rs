//! The settings file: TOML, with every mistake reported at its position.

use std::ops::Range;

use switchyard_base::{Diagnostic, Diagnostics, Position, suggest};
use toml_edit::{Document, Item, TableLike, Value};

use crate::setting::Setting;
use crate::table::SETTINGS;

/// The content of a settings file: for each setting, the text of its value and its line.
pub(crate) type Said = Vec<Option<(String, usize)>>;

/// Parses the text of a settings file. `file` is its name in diagnostics.
pub(crate) fn read(file: &str, text: &str) -> Result<Said, Diagnostics> {
    let mut reader = Reader { text, said: vec![None; SETTINGS.len()], problems: Vec::new() };
    match Document::parse(text) {
        Ok(document) => reader.table("", document.as_table()),
        Err(error) => reader.problem(String::new(), error.span(), error.message().trim(), None),
    }
    reader.problems.sort_by_key(|found| found.position.map(|place| place.offset));
    match Diagnostics::from_list(reader.problems) {
        Some(problems) => Err(problems.in_file(file)),
        None => Ok(reader.said),
    }
}

struct Reader<'a> {
    text: &'a str,
    said: Said,
    problems: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn table(&mut self, path: &str, table: &dyn TableLike) {
        for (name, item) in table.iter() {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let at_key = table.key(name).and_then(|key| key.span()).or_else(|| item.span());
            if let Some(at) = SETTINGS.iter().position(|setting| setting.key == path) {
                self.value(at, item, at_key);
            } else if is_table(&path) {
                match item.as_table_like() {
                    Some(inner) => self.table(&path, inner),
                    None => self.not_a_table(path, item.span().or(at_key)),
                }
            } else {
                let hint = did_you_mean(&path);
                self.problem(path.clone(), at_key, &format!("there is no setting `{path}`"), hint);
            }
        }
    }

    fn value(&mut self, at: usize, item: &Item, at_key: Option<Range<usize>>) {
        let setting = &SETTINGS[at];
        let span = item.span().or(at_key);
        let Some(text) = plain(item) else {
            let message = format!("`{}` takes one value, not one of type {}", setting.key, item.type_name());
            return self.problem(setting.key.to_owned(), span, &message, Some(expected(setting)));
        };
        match setting.check(&text) {
            Ok(_) => self.said[at] = Some((text, span.map_or(0, |span| self.place(span).line))),
            Err(bad) => self.problem(setting.key.to_owned(), span, &bad.message, bad.hint),
        }
    }

    fn not_a_table(&mut self, path: String, span: Option<Range<usize>>) {
        let message = format!("`{path}` is a table of settings, not a setting");
        let inside = SETTINGS.iter().map(|setting| setting.key).filter(|key| lies_in(key, &path));
        let hint = format!("settings in it: {}", inside.collect::<Vec<_>>().join(", "));
        self.problem(path, span, &message, Some(hint));
    }

    fn problem(&mut self, path: String, span: Option<Range<usize>>, message: &str, hint: Option<String>) {
        let position = span.map(|span| self.place(span));
        self.problems.push(Diagnostic { message: message.to_owned(), hint, path, position });
    }

    fn place(&self, span: Range<usize>) -> Position {
        let offset = span.start.min(self.text.len());
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            offset,
            len: span.end.min(self.text.len()).saturating_sub(offset),
        }
    }
}

fn expected(setting: &Setting) -> String {
    format!("expected {}", setting.expected())
}

fn lies_in(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

fn is_table(path: &str) -> bool {
    SETTINGS.iter().any(|setting| lies_in(setting.key, path))
}

/// Suggests a setting for an unknown key, by the whole key or by its last part: `slots` finds `worker.slots`.
fn did_you_mean(path: &str) -> Option<String> {
    let last = |key: &'static str| key.rsplit_once('.').map_or(key, |(_, last)| last);
    let named = |wanted: &str| SETTINGS.iter().map(|setting| setting.key).find(|key| last(key) == wanted);
    let own_last = path.rsplit_once('.').map_or(path, |(_, last)| last);
    let near = named(own_last).or_else(|| {
        suggest::nearest(path, SETTINGS.iter().map(|setting| setting.key))
            .or_else(|| named(suggest::nearest(own_last, SETTINGS.iter().map(|setting| last(setting.key)))?))
    });
    Some(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`switchyard config` lists the settings".to_owned(),
    })
}

/// The text of a string, number or boolean; `None` for any other value.
fn plain(item: &Item) -> Option<String> {
    match item.as_value()? {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Boolean(value) => Some(value.value().to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::InlineTable(_) => None,
    }
}
