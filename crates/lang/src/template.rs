//! Templates: any JSON with `${{ … }}` in its strings.
//!
//! A string that is exactly one expression becomes the expression's value, of any type. In a longer string the
//! values are put between the text: strings as they are, anything else as JSON. `$${{` stands for a plain `${{`.

use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};
use switchyard_base::Diagnostics;

use crate::expr::{BadExpr, Budget, Exceeded, Expr, ExprError, Refs, Scope, Vars};
use crate::problem::{At, Problems};

const OPEN: &str = "${{";
const ESCAPED: &str = "$${{";
const CLOSE: &str = "}}";

/// A compiled template. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Template(Arc<Form>);

#[derive(Clone, Debug)]
enum Form {
    /// No expression anywhere inside.
    Constant(Value),
    Expr(Expr),
    Text(Vec<Piece>),
    List(Vec<Form>),
    Map(Vec<(String, Form)>),
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Expr(Expr),
}

impl Template {
    /// Compiles a template that stands alone, outside of a definition.
    pub fn compile(value: &Value, allowed: Vars) -> Result<Self, Diagnostics> {
        let mut problems = Problems::default();
        let template = Self::compile_at(value, allowed, &At::Root, &mut problems, &mut |_, _| {});
        problems.finish(None)?;
        Ok(template)
    }

    /// Compiles a template of a definition. Problems go to `problems`, and the references of each expression go to
    /// `found` with their place.
    pub(crate) fn compile_at(
        value: &Value,
        allowed: Vars,
        at: &At<'_>,
        problems: &mut Problems,
        found: &mut dyn FnMut(&At<'_>, &Refs),
    ) -> Self {
        Self(Arc::new(Compiler { allowed, problems, found }.form(value, at)))
    }

    pub fn constant(value: Value) -> Self {
        Self(Arc::new(Form::Constant(value)))
    }

    /// The value, if it needs no scope.
    pub fn as_constant(&self) -> Option<&Value> {
        match &*self.0 {
            Form::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Renders the whole document on one budget.
    pub fn render(&self, scope: &Scope, budget: &Budget<'_>) -> Result<Value, ExprError> {
        self.0.render(scope, budget)
    }

    /// Renders to text: a string as it is, any other value as JSON.
    pub fn render_text(&self, scope: &Scope, budget: &Budget<'_>) -> Result<String, ExprError> {
        match self.render(scope, budget)? {
            Value::String(text) => Ok(text),
            other => {
                let mut text = Vec::new();
                write_json(&mut text, &other, budget).map_err(of_template)?;
                Ok(lossless(text))
            }
        }
    }

    /// An error about the value of this template, which names its expression if it is a single one.
    pub(crate) fn error(&self, reason: impl Into<String>) -> ExprError {
        match &*self.0 {
            Form::Expr(expr) => expr.error(reason),
            Form::Constant(value) => {
                ExprError { expression: value.to_string(), reason: reason.into(), exceeded: None }
            }
            _ => ExprError { expression: "template".to_owned(), reason: reason.into(), exceeded: None },
        }
    }
}

impl Form {
    fn render(&self, scope: &Scope, budget: &Budget<'_>) -> Result<Value, ExprError> {
        budget.step(1).map_err(of_template)?;
        Ok(match self {
            Self::Constant(value) => {
                budget.copy_json(value).map_err(of_template)?;
                value.clone()
            }
            Self::Expr(expr) => expr.eval(scope, budget)?,
            Self::Text(pieces) => Value::String(render_pieces(pieces, scope, budget)?),
            Self::List(list) => {
                Value::Array(list.iter().map(|form| form.render(scope, budget)).collect::<Result<_, _>>()?)
            }
            Self::Map(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, form) in entries {
                    map.insert(key.clone(), form.render(scope, budget)?);
                }
                Value::Object(map)
            }
        })
    }
}

fn render_pieces(pieces: &[Piece], scope: &Scope, budget: &Budget<'_>) -> Result<String, ExprError> {
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(piece) => push(&mut text, piece.as_bytes(), budget).map_err(of_template)?,
            Piece::Expr(expr) => {
                let written = match expr.eval(scope, budget)? {
                    Value::String(value) => push(&mut text, value.as_bytes(), budget),
                    other => write_json(&mut text, &other, budget),
                };
                written.map_err(|exceeded| ExprError::exceeded(expr.source(), exceeded))?;
            }
        }
    }
    Ok(lossless(text))
}

fn push(text: &mut Vec<u8>, piece: &[u8], budget: &Budget<'_>) -> Result<(), Exceeded> {
    budget.make(piece.len() as u64)?;
    text.extend_from_slice(piece);
    Ok(())
}

/// A text writer that charges the budget for every byte before it writes it.
struct Metered<'a> {
    text: &'a mut Vec<u8>,
    budget: &'a Budget<'a>,
}

impl io::Write for Metered<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        push(self.text, piece, self.budget).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_json(text: &mut Vec<u8>, value: &Value, budget: &Budget<'_>) -> Result<(), Exceeded> {
    // Only the budget can make this fail: a JSON value always serialises.
    let _ = serde_json::to_writer(Metered { text, budget }, value);
    budget.exceeded().map_or(Ok(()), Err)
}

/// Converts the text, which is UTF-8 because every piece is.
fn lossless(text: Vec<u8>) -> String {
    String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn of_template(exceeded: Exceeded) -> ExprError {
    ExprError::exceeded("template", exceeded)
}

struct Compiler<'a> {
    allowed: Vars,
    problems: &'a mut Problems,
    found: &'a mut dyn FnMut(&At<'_>, &Refs),
}

impl Compiler<'_> {
    fn form(&mut self, value: &Value, at: &At<'_>) -> Form {
        match value {
            Value::String(text) if text.contains(OPEN) => self.text(text, at),
            Value::Array(list) => {
                let forms: Vec<Form> = list
                    .iter()
                    .enumerate()
                    .map(|(index, value)| self.form(value, &at.index(index)))
                    .collect();
                if forms.iter().all(Form::is_constant) {
                    Form::Constant(constant_list(forms))
                } else {
                    Form::List(forms)
                }
            }
            Value::Object(map) => {
                let forms: Vec<(String, Form)> =
                    map.iter().map(|(key, value)| (key.clone(), self.form(value, &at.key(key)))).collect();
                let constant = forms.iter().all(|(_, form)| form.is_constant());
                // An escaped `$${{` is constant too, but differs from the source text.
                if constant { Form::Constant(constant_map(forms)) } else { Form::Map(forms) }
            }
            constant => Form::Constant(constant.clone()),
        }
    }

    fn text(&mut self, text: &str, at: &At<'_>) -> Form {
        match split(text) {
            Ok(parts) => self.pieces(&parts, at),
            Err(error) => {
                self.problem(at, error);
                Form::Constant(Value::Null)
            }
        }
    }

    fn problem(&mut self, at: &At<'_>, BadExpr { message, hint }: BadExpr) {
        self.problems.add(at, message, hint);
    }

    fn pieces(&mut self, parts: &[Part<'_>], at: &At<'_>) -> Form {
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Text(text) => pieces.push(Piece::Text((*text).to_owned())),
                Part::Expr(source) => match Expr::compile(source, self.allowed) {
                    Ok(expr) => {
                        (self.found)(at, expr.refs());
                        pieces.push(Piece::Expr(expr));
                    }
                    Err(error) => self.problem(at, error),
                },
            }
        }
        match pieces.as_slice() {
            [Piece::Expr(expr)] => Form::Expr(expr.clone()),
            // The line break at the end of a block scalar is not text that the author put around the expression.
            [Piece::Expr(expr), Piece::Text(rest)] if rest == "\n" => Form::Expr(expr.clone()),
            pieces if pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) => {
                Form::Constant(Value::String(joined(pieces)))
            }
            _ => Form::Text(pieces),
        }
    }
}

impl Form {
    fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }
}

fn constant_list(forms: Vec<Form>) -> Value {
    let constants = forms.into_iter().filter_map(|form| match form {
        Form::Constant(value) => Some(value),
        _ => None,
    });
    Value::Array(constants.collect())
}

fn constant_map(forms: Vec<(String, Form)>) -> Value {
    let constants = forms.into_iter().filter_map(|(key, form)| match form {
        Form::Constant(value) => Some((key, value)),
        _ => None,
    });
    Value::Object(constants.collect())
}

fn joined(pieces: &[Piece]) -> String {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Expr(_) => "",
    });
    texts.collect()
}

#[derive(Debug, PartialEq)]
enum Part<'a> {
    Text(&'a str),
    Expr(&'a str),
}

/// Cuts a text into plain stretches and expressions.
fn split(text: &str) -> Result<Vec<Part<'_>>, BadExpr> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let escaped = at > 0 && rest[..at + OPEN.len()].ends_with(ESCAPED);
        if escaped {
            parts.extend([Part::Text(&rest[..at - 1]), Part::Text(OPEN)]);
            rest = &rest[at + OPEN.len()..];
            continue;
        }
        parts.push(Part::Text(&rest[..at]));
        let inside = &rest[at + OPEN.len()..];
        let Some(end) = expression_end(inside) else {
            return Err(BadExpr {
                message: "`${{` without `}}`".to_owned(),
                hint: Some("write `$${{` for a plain `${{`".to_owned()),
            });
        };
        parts.push(Part::Expr(&inside[..end]));
        rest = &inside[end + CLOSE.len()..];
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(""));
    Ok(parts)
}

/// The position of the closing `}}`: not inside a string, and not the end of two map literals.
fn expression_end(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') if depth > 0 => depth -= 1,
            (None, b'}') if text[at..].starts_with(CLOSE) => return Some(at),
            (None, _) => {}
        }
    }
    None
}

/// The braces that other languages put around an expression in a text.
const BRACES: [(&str, &str); 2] = [("{{", "}}"), ("${", "}")];

/// How far apart braces may be.
const LOOKALIKE_BYTES_MAX: usize = 200;

/// Refuses `{{ input.x }}` and `${ input.x }`: plain text here, an expression in other languages.
pub(crate) fn refuse_lookalikes(value: &Value, allowed: Vars, at: &At<'_>, problems: &mut Problems) {
    match value {
        Value::String(text) => {
            if let Some(shown) = lookalike(text, allowed) {
                let message = format!("`{shown}` is plain text, not an expression");
                let hint = format!("write `${{{{ … }}}}`, or `${{{{ '{shown}' }}}}` for that text");
                problems.add(at, message, Some(hint));
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                refuse_lookalikes(value, allowed, &at.index(index), problems);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                refuse_lookalikes(value, allowed, &at.key(key), problems);
            }
        }
        _ => {}
    }
}

/// The first lookalike of a text: braces around an allowed variable and one of its fields.
fn lookalike<'t>(text: &'t str, allowed: Vars) -> Option<&'t str> {
    let plain = |parts: Vec<Part<'t>>| {
        parts.into_iter().find_map(|part| match part {
            Part::Text(text) => BRACES.iter().find_map(|(open, close)| braced(text, open, close, allowed)),
            Part::Expr(_) => None,
        })
    };
    plain(split(text).ok()?)
}

fn braced<'t>(text: &'t str, open: &str, close: &str, allowed: Vars) -> Option<&'t str> {
    text.match_indices(open).find_map(|(start, _)| {
        let inside = &text[start + open.len()..];
        let word = inside.trim_start();
        let name = allowed.iter().find(|name| word.starts_with(**name))?;
        let is_path = word[name.len()..].starts_with(['.', '[']);
        let end = inside.find(close).filter(|end| is_path && *end <= LOOKALIKE_BYTES_MAX)?;
        Some(&text[start..start + open.len() + end + close.len()])
    })
}

/// Compiles a condition, which may be written with or without `${{ }}`.
pub(crate) fn condition(text: &str, allowed: Vars) -> Result<Expr, BadExpr> {
    if !text.contains(OPEN) {
        return Expr::compile(text, allowed);
    }
    match split(text.trim())?.as_slice() {
        [Part::Expr(source)] => Expr::compile(source, allowed),
        _ => Err(BadExpr {
            message: "a condition must be one expression".to_owned(),
            hint: Some("put all of it inside one `${{ … }}`".to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests;
