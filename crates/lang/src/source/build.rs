//! Builds a tree from parser events with an explicit stack: the text decides the depth, so the builder does not
//! recurse.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};
use switchyard_base::Diagnostic;

use super::{Data, Key, Span, Tree, scalar};
use crate::limits;

pub(super) struct SourceError {
    message: String,
    hint: Option<String>,
    span: Span,
}

impl SourceError {
    fn new(span: Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, span }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn in_text(self, text: &str) -> Diagnostic {
        let position = Some(self.span.in_text(text));
        let hint = unquoted_expression(text, self.span.line).or(self.hint);
        Diagnostic { message: self.message, hint, path: String::new(), position }
    }
}

/// The hint for a line with an expression that YAML takes apart, because it is not in quotes.
fn unquoted_expression(text: &str, line: usize) -> Option<String> {
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let (before, _) = line.split_once("${{")?;
    let quoted = before.matches(['"', '\'']).count() % 2 == 1;
    let in_flow = before.contains(['{', '[']);
    (in_flow && !quoted)
        .then(|| "put an expression inside `{ }` or `[ ]` in quotes: `\"${{ … }}\"`".to_owned())
}

/// A map or list whose end event has not arrived yet.
struct Open {
    span: Span,
    anchor: usize,
    inside: Inside,
    /// The number of values so far, itself included, which an alias to it would add.
    weight: usize,
}

enum Inside {
    List(Vec<Tree>),
    Map { entries: Vec<(Key, Tree)>, seen: HashMap<String, Span>, pending: Option<Key> },
}

/// An anchored value, with the cost of expanding it.
struct Anchored {
    tree: Tree,
    weight: usize,
    depth: usize,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    root: Option<Tree>,
    total: usize,
}

pub(super) fn too_deep() -> String {
    format!("nested deeper than the limit of {} levels", limits::NESTING_MAX)
}

pub(super) fn build(text: &str) -> Result<Tree, SourceError> {
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    let mut builder = Builder::default();
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| scan_error(&error))?;
        builder.event(event, span.into())?;
    }
    builder.root.ok_or_else(|| {
        SourceError::new(Span { line: 1, column: 1, ..Span::default() }, "the document is empty")
            .hint("a workflow needs at least `name` and `nodes`")
    })
}

fn scan_error(error: &ScanError) -> SourceError {
    // The scanner has its own limit, and may reach it while looking ahead, before this stack is full.
    let message = match error.info() {
        "recursion limit exceeded" => too_deep(),
        info => format!("invalid YAML: {info}"),
    };
    SourceError::new((*error.marker()).into(), message)
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), SourceError> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(SourceError::new(span, "more than one document in the text")
                    .hint("put each workflow into a file of its own"))
            }
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<" && self.expects_key() => {
                Err(SourceError::new(span, "merge keys (`<<`) are not supported")
                    .hint("write the fields out, or give the whole value an anchor and use its alias"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let data = scalar_data(&text, style, tag.as_deref(), span)?;
                self.value(Tree { span, data }, anchor, 1, 0)
            }
            Event::SequenceStart(anchor, tag) => {
                core_tag(tag.as_deref(), "seq", span)?;
                self.start(span, anchor, Inside::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                core_tag(tag.as_deref(), "map", span)?;
                let inside = Inside::Map { entries: Vec::new(), seen: HashMap::new(), pending: None };
                self.start(span, anchor, inside)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    fn start(&mut self, span: Span, anchor: usize, inside: Inside) -> Result<(), SourceError> {
        if self.open.len() >= limits::NESTING_MAX {
            return Err(SourceError::new(span, too_deep()));
        }
        self.refuse_as_key(span)?;
        self.count(1, span)?;
        self.open.push(Open { span, anchor, inside, weight: 1 });
        Ok(())
    }

    fn end(&mut self) -> Result<(), SourceError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let data = match open.inside {
            Inside::List(list) => Data::List(list),
            Inside::Map { entries, .. } => Data::Map(entries),
        };
        // The values inside were counted already, one by one.
        self.place(Tree { span: open.span, data }, open.anchor, open.weight)
    }

    fn value(&mut self, tree: Tree, anchor: usize, weight: usize, depth: usize) -> Result<(), SourceError> {
        if self.open.len() + depth > limits::NESTING_MAX {
            return Err(SourceError::new(tree.span, too_deep()));
        }
        self.count(weight, tree.span)?;
        self.place(tree, anchor, weight)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), SourceError> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(SourceError::new(span, "an alias inside the value it stands for"));
        };
        let (weight, depth) = (anchored.weight, anchored.depth);
        // Checked before the copy is made: a billion-laughs attack aims at the copy.
        if self.total + weight > limits::VALUES_MAX {
            return Err(too_many(span));
        }
        let tree = Tree { span, data: anchored.tree.data.clone() };
        self.value(tree, 0, weight, depth)
    }

    fn count(&mut self, weight: usize, span: Span) -> Result<(), SourceError> {
        self.total += weight;
        if self.total > limits::VALUES_MAX { Err(too_many(span)) } else { Ok(()) }
    }

    /// Whether the innermost open value is a map that expects a key.
    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { inside: Inside::Map { pending: None, .. }, .. }))
    }

    fn refuse_as_key(&self, span: Span) -> Result<(), SourceError> {
        if self.expects_key() {
            return Err(SourceError::new(span, "a key must be a string")
                .hint("quote text that starts with `{`, `[` or `${{`"));
        }
        Ok(())
    }

    fn place(&mut self, tree: Tree, anchor: usize, weight: usize) -> Result<(), SourceError> {
        if anchor > 0 {
            let depth = depth_of(&tree);
            self.anchors.insert(anchor, Anchored { tree: tree.clone(), weight, depth });
        }
        let in_nodes = self.is_nodes_map();
        let Some(open) = self.open.last_mut() else {
            self.root = Some(tree);
            return Ok(());
        };
        open.weight += weight;
        match &mut open.inside {
            Inside::List(list) => list.push(tree),
            Inside::Map { entries, seen, pending } => match pending.take() {
                Some(key) => entries.push((key, tree)),
                None => *pending = Some(new_key(tree, seen, in_nodes)?),
            },
        }
        Ok(())
    }

    /// Whether the innermost open map stands under the key `nodes`.
    fn is_nodes_map(&self) -> bool {
        let parent = self.open.len().checked_sub(2).map(|parent| &self.open[parent].inside);
        matches!(parent, Some(Inside::Map { pending: Some(key), .. }) if key.text == "nodes")
    }
}

fn new_key(tree: Tree, seen: &mut HashMap<String, Span>, in_nodes: bool) -> Result<Key, SourceError> {
    let span = tree.span;
    let Data::String(text) = tree.data else {
        return Err(SourceError::new(span, format!("a key must be a string, this is {}", tree.kind()))
            .hint("put it in quotes"));
    };
    if let Some(first) = seen.insert(text.clone(), span) {
        let what = if in_nodes { "node id" } else { "key" };
        return Err(SourceError::new(span, format!("duplicate {what} `{text}`"))
            .hint(format!("the first is at {}:{}", first.line, first.column)));
    }
    Ok(Key { text, span })
}

fn too_many(span: Span) -> SourceError {
    let message = format!("more than {} values, aliases expanded", limits::VALUES_MAX);
    SourceError::new(span, message).hint("move large data into the run's input")
}

/// The depth of a tree. The recursion is bounded by [`limits::NESTING_MAX`], which was checked when the tree was built.
fn depth_of(tree: &Tree) -> usize {
    match &tree.data {
        Data::List(list) => 1 + list.iter().map(depth_of).max().unwrap_or(0),
        Data::Map(entries) => 1 + entries.iter().map(|(_, tree)| depth_of(tree)).max().unwrap_or(0),
        _ => 0,
    }
}

fn scalar_data(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Data, SourceError> {
    let quoted = |text: &str| Data::String(text.to_owned());
    let Some(tag) = tag else {
        return match style {
            ScalarStyle::Plain => scalar::plain(text).map_err(|message| {
                SourceError::new(span, message).hint("put it in quotes if it is meant as text")
            }),
            _ => Ok(quoted(text)),
        };
    };
    if is_core(tag, "str") || (tag.handle == "!" && tag.suffix.is_empty()) {
        return Ok(quoted(text));
    }
    let data = scalar::plain(text).map_err(|message| SourceError::new(span, message))?;
    let fits = match &data {
        Data::Null => is_core(tag, "null"),
        Data::Bool(_) => is_core(tag, "bool"),
        Data::Number(number) => is_core(tag, "float") || (is_core(tag, "int") && !number.is_f64()),
        _ => false,
    };
    if fits { Ok(data) } else { Err(unknown_tag(tag, span)) }
}

fn core_tag(tag: Option<&Tag>, suffix: &str, span: Span) -> Result<(), SourceError> {
    match tag {
        Some(tag) if !is_core(tag, suffix) => Err(unknown_tag(tag, span)),
        _ => Ok(()),
    }
}

fn is_core(tag: &Tag, suffix: &str) -> bool {
    tag.is_yaml_core_schema() && tag.suffix == suffix
}

fn unknown_tag(tag: &Tag, span: Span) -> SourceError {
    SourceError::new(span, format!("the tag `{tag}` does not fit here")).hint("remove it")
}
