//! All output: data on stdout, everything else on stderr. No other module prints.
//!
//! Users write names, errors, outputs and comments, and a terminal executes control characters. This module therefore
//! escapes text for people (`escape`). JSON is exact where a program reads it. On a terminal, control characters
//! that JSON allows are written as `\u` escapes, which is the same document.

use std::io::{self, IsTerminal, Write};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;
use switchyard_core::Timestamp;

use crate::escape;

/// Prints a line of text for people to stdout.
pub(crate) fn line(text: &str) -> io::Result<()> {
    write_line(&escape::text(text))
}

fn write_line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// Prints a JSON document: indented on a terminal, compact for a program.
pub(crate) fn json(document: &impl Serialize) -> io::Result<()> {
    if io::stdout().is_terminal() { json_pretty(document) } else { json_line(document) }
}

pub(crate) fn json_line(document: &impl Serialize) -> io::Result<()> {
    json_text(&serde_json::to_string(document)?)
}

pub(crate) fn json_pretty(document: &impl Serialize) -> io::Result<()> {
    json_text(&serde_json::to_string_pretty(document)?)
}

/// Prints a document that is JSON text already.
pub(crate) fn json_text(document: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { write_line(&escape::json(document)) } else { write_line(document) }
}

/// Columns with ids that people copy: they are never wrapped, however narrow the terminal is.
const IDS: [&str; 4] = ["RUN", "APPROVAL", "PATCH", "SCHEDULE"];

fn terminal_width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// Prints a table as wide as the terminal, or as its content if stdout is not a terminal.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|cell| escape::text(&cell).into_owned())));
    for (index, _) in header.iter().enumerate().filter(|(_, name)| IDS.contains(name)) {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    line(&table.trim_fmt())
}

/// Prints a line for the user to stderr. Errors are ignored: there is nowhere to report a closed stderr.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escape::text(text));
}

/// Like [`tell`], after a sign that may be coloured and is not escaped.
pub(crate) fn tell_signed(sign: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{sign} {}", escape::text(text));
}

/// Prints text with colours to stderr. The caller has escaped the users' text in it.
pub(crate) fn tell_drawn(drawn: &str) {
    let _ = writeln!(io::stderr().lock(), "{drawn}");
}

pub(crate) fn hint(text: &str) {
    tell(&format!("hint: {text}"));
}

/// Prints a question to stderr, without a line break.
pub(crate) fn ask(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{} ", escape::text(text));
    let _ = stderr.flush();
}

/// A time as tables show it: to the second, in UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    let text = at.to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{}Z", seconds.replace('T', " ")),
        None => text,
    }
}

/// Whether stderr may be coloured.
pub(crate) fn colors() -> bool {
    io::stderr().is_terminal() && !switchyard_settings::no_color()
}

/// The text, or `-` if there is none.
pub(crate) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}

/// A duration, rounded for people.
pub(crate) fn took(length: std::time::Duration) -> String {
    match length.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        millis @ 1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        millis => {
            let seconds = millis / 1_000;
            match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
                (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
                (hours, minutes, _) => format!("{hours}h {minutes}m"),
            }
        }
    }
}

/// Labels as text: `env=prod team=search`.
pub(crate) fn labels(labels: &switchyard_core::Labels) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(" ")
}
