//! The two ways out: data on stdout, everything else on stderr. Nothing else prints.
//!
//! Names, errors, outputs and comments are written by users, and a terminal obeys what it is sent. Text for people is
//! therefore escaped here (`escape`). JSON is exact where a program reads it. On a terminal the
//! characters that JSON allows and terminals obey are written as `\u` escapes, which is the same document.

use std::io::{self, IsTerminal, Write};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;
use switchyard_core::Timestamp;

use crate::escape;

/// A line of data, as text for people.
pub(crate) fn line(text: &str) -> io::Result<()> {
    write_line(&escape::text(text))
}

fn write_line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// A document for a person on a terminal, compact for a program.
pub(crate) fn json(document: &impl Serialize) -> io::Result<()> {
    if io::stdout().is_terminal() { json_pretty(document) } else { json_line(document) }
}

pub(crate) fn json_line(document: &impl Serialize) -> io::Result<()> {
    json_text(&serde_json::to_string(document)?)
}

pub(crate) fn json_pretty(document: &impl Serialize) -> io::Result<()> {
    json_text(&serde_json::to_string_pretty(document)?)
}

/// A document that is JSON already.
pub(crate) fn json_text(document: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { write_line(&escape::json(document)) } else { write_line(document) }
}

/// Columns that people copy: they are never wrapped, however narrow the terminal is.
const IDS: [&str; 4] = ["RUN", "APPROVAL", "PATCH", "SCHEDULE"];

fn terminal_width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// A table as wide as the terminal, or as its content where there is none.
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

/// A line for the person who typed the command. That stderr is gone can be told to no one.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escape::text(text));
}

/// The same after a sign of ours, which may be coloured.
pub(crate) fn tell_signed(sign: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{sign} {}", escape::text(text));
}

/// Text with colours in it. What in it is not ours, its caller has escaped.
pub(crate) fn tell_drawn(drawn: &str) {
    let _ = writeln!(io::stderr().lock(), "{drawn}");
}

pub(crate) fn hint(text: &str) {
    tell(&format!("hint: {text}"));
}

/// A question: the cursor stays behind it.
pub(crate) fn ask(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{} ", escape::text(text));
    let _ = stderr.flush();
}

/// A moment as a table shows it: to the second, in UTC.
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

/// What may be missing.
pub(crate) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}

/// How long something took, rounded for people.
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

/// `env=prod team=search`
pub(crate) fn labels(labels: &switchyard_core::Labels) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(" ")
}
