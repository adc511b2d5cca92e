//! Reads workflow files, inputs and patch operations.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};
use switchyard_base::PatchOp;
use switchyard_lang::Program;

use crate::errors::Failure;

/// The file name of stdin in messages.
const STDIN: &str = "<stdin>";

/// The input of a run, given in one of three ways
#[derive(Clone, Debug, Default, clap::Args)]
#[group(multiple = false)]
pub(crate) struct InputArgs {
    /// The input, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,

    /// A file with the input, JSON or YAML; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) input_file: Option<String>,

    /// A field of the input; the value is JSON, or else text (repeatable)
    #[arg(short = 'i', value_name = "KEY=VALUE")]
    pub(crate) field: Vec<String>,
}

impl InputArgs {
    /// The input; null if none is given, which the workflow interprets.
    pub(crate) fn read(&self) -> Result<Value, Failure> {
        if let Some(text) = &self.input {
            return json("--input", text);
        }
        if let Some(file) = &self.input_file {
            return value(file);
        }
        if self.field.is_empty() { Ok(Value::Null) } else { fields(&self.field) }
    }
}

pub(crate) fn json(flag: &str, text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!("{flag} is not JSON: {error}"))
            .hint("quote it for the shell, such as '{\"name\": \"Ada\"}', and text inside with \"\"")
    })
}

fn fields(pairs: &[String]) -> Result<Value, Failure> {
    let mut map = Map::new();
    for pair in pairs {
        let Some((key, text)) = pair.split_once('=') else {
            return Err(Failure::usage(format!("`-i {pair}` has no `=`")).hint("write -i name=Ada"));
        };
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        map.insert(key.to_owned(), value);
    }
    Ok(Value::Object(map))
}

/// Reads JSON or YAML from a file.
fn value(file: &str) -> Result<Value, Failure> {
    let bytes = bytes(file)?;
    // JSON first: an input may be larger than the limit of the workflow parser.
    if let Ok(value) = serde_json::from_slice(&bytes) {
        return Ok(value);
    }
    let name = shown(file);
    switchyard_lang::parse_value(&name, &bytes)
        .map_err(|diagnostics| Failure::invalid(name, diagnostics, text(&bytes)))
}

/// Reads the operations of a patch: a list, or a map with a list `ops`.
pub(crate) fn operations(file: &str) -> Result<Vec<PatchOp>, Failure> {
    let ops = match value(file)? {
        Value::Object(mut map) => map.remove("ops").unwrap_or(Value::Null),
        other => other,
    };
    let Value::Array(ops) = ops else {
        return Err(Failure::usage(format!("{} has no list of operations", shown(file)))
            .hint("write a list such as `- {op: remove_node, id: extra}`"));
    };
    let decode = |(index, op): (usize, Value)| {
        serde_json::from_value(op)
            .map_err(|error| Failure::usage(format!("{}, operation {}: {error}", shown(file), index + 1)))
    };
    ops.into_iter().enumerate().map(decode).collect()
}

/// Reads and compiles a workflow, with the files that it includes.
pub(crate) fn program(file: &str) -> Result<Program, Failure> {
    let bytes = bytes(file)?;
    let name = shown(file);
    let base = Path::new(file).parent().unwrap_or(Path::new(""));
    Program::compile_bundled(&name, &bytes, base, &|path| std::fs::read(path)).map_err(|diagnostics| {
        let own = diagnostics.file.as_deref() == Some(&name);
        Failure::invalid(&name, diagnostics, text(&bytes).filter(|_| own))
    })
}

fn bytes(file: &str) -> Result<Vec<u8>, Failure> {
    let read = if file == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| Failure::usage(format!("cannot read {}: {}", shown(file), reason(&error))))
}

/// The text of an I/O error, without the number that the standard library appends.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or(&text);
    plain.to_lowercase()
}

fn shown(file: &str) -> String {
    if file == "-" { STDIN.to_owned() } else { file.to_owned() }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Parses `KEY=VALUE`. The label itself is checked when the run is accepted.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

pub(crate) fn labels(given: &[(String, String)]) -> switchyard_core::Labels {
    given.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}
