//! Decodes a tree to a definition, field by field, so that one pass finds every mistake.

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use switchyard_base::{Diagnostic, Diagnostics};
use switchyard_core::labels::{LABELS_MAX, check_label_key};

use crate::problem::{At, Problems};
use crate::source::{Data, Tree};
use crate::spec::{
    BackoffSpec, CacheSpec, CommonSpec, CompensateCommon, CompensateSpec, ConcurrencySpec, Definition,
    InputDraft, JoinSpec, KindSpec, NodeSpec, OnErrorSpec, RetrySpec, TransformSpec,
};

mod fields;
mod kinds;
mod leaves;

use fields::Fields;
use leaves::{boolean, choice, count, duration, list_of, map, positive, string, template};

/// Decodes JSON that is already parsed: an API submission, a stored definition, a patched node.
pub fn decode_value(value: &Value) -> Result<Definition, Diagnostics> {
    let tree = Tree::from_value(value.clone())?;
    let mut problems = Problems::default();
    let definition = definition(&tree, &At::Root, &mut problems);
    finish(definition, problems, None)
}

/// Decodes one node. Paths start at the node.
pub(crate) fn decode_node(value: &Value) -> Result<NodeSpec, Diagnostics> {
    let tree = Tree::from_value(value.clone())?;
    let mut problems = Problems::default();
    let node = node(&tree, &At::Root, &mut problems);
    finish(node, problems, None)
}

/// Returns the decoded or compiled value, or the diagnostics if there are problems.
pub(crate) fn finish<T>(
    made: Option<T>,
    problems: Problems,
    source: Option<(&Tree, &str)>,
) -> Result<T, Diagnostics> {
    problems.finish(source)?;
    // No value and no problem is a bug in this crate; the caller still gets a diagnostic.
    made.ok_or_else(|| Diagnostics::one(Diagnostic::plain("the definition cannot be read")))
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        decode_value(&Value::deserialize(d)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for NodeSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        decode_node(&Value::deserialize(d)?).map_err(D::Error::custom)
    }
}

pub(crate) fn definition(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<Definition> {
    let mut fields = Fields::open(tree, at, problems)?;
    let name = fields.required("name", string);
    let nodes = fields.required("nodes", nodes);
    let has_nodes = nodes.is_some();
    let definition = Definition {
        description: fields.optional("description", string),
        input: fields.template("input"),
        input_draft: fields.optional("input_draft", choice(&[("2020-12", InputDraft::Draft202012)])),
        output: fields.template("output"),
        deadline: fields.optional("deadline", duration),
        parallelism: fields.optional("parallelism", positive),
        concurrency: fields.optional("concurrency", concurrency),
        labels: fields.optional("labels", labels).unwrap_or_default(),
        inherit_labels: fields.optional("inherit_labels", boolean).unwrap_or_default(),
        name: name.unwrap_or_else(|| UNREADABLE.to_owned()),
        nodes: nodes.unwrap_or_default(),
    };
    fields.close();
    has_nodes.then_some(definition)
}

fn nodes(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<IndexMap<String, NodeSpec>> {
    let entries = map(tree, at, problems)?;
    let mut nodes = IndexMap::with_capacity(entries.len());
    for (key, tree) in entries {
        let node = node(tree, &at.key(&key.text), problems);
        nodes.insert(key.text.clone(), node.unwrap_or_else(unreadable_node));
    }
    Some(nodes)
}

/// Stands for a name or a URL with a problem, so that the rest of the definition can be checked.
const UNREADABLE: &str = "unreadable";

/// Stands for a node with a problem: other nodes may need it.
fn unreadable_node() -> NodeSpec {
    NodeSpec { kind: KindSpec::Transform(TransformSpec { value: None }), common: CommonSpec::default() }
}

fn concurrency(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<ConcurrencySpec> {
    let mut fields = Fields::open(tree, at, problems)?;
    let key = fields.required("key", string);
    let limit = fields.required("limit", positive);
    fields.close();
    Some(ConcurrencySpec { key: key?, limit: limit? })
}

fn labels(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<IndexMap<String, String>> {
    let entries = map(tree, at, problems)?;
    if entries.len() > LABELS_MAX {
        let message = format!("{} labels; a run may have {LABELS_MAX}", entries.len());
        problems.add(at, message, None);
    }
    let mut labels = IndexMap::with_capacity(entries.len());
    for (key, tree) in entries {
        let at = at.key(&key.text);
        if let Err(bad) = check_label_key(&key.text) {
            problems.add(&at, bad.to_string(), None);
        }
        if let Some(value) = label(tree, &at, problems) {
            labels.insert(key.text.clone(), value);
        }
    }
    Some(labels)
}

/// Decodes the value of a label. A number or a boolean need not be quoted.
fn label(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<String> {
    match &tree.data {
        Data::Number(value) => Some(value.to_string()),
        Data::Bool(value) => Some(value.to_string()),
        _ => string(tree, at, problems),
    }
}

fn node(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<NodeSpec> {
    let mut fields = Fields::open(tree, at, problems)?;
    let kind = kinds::kind(&mut fields);
    let common = CommonSpec {
        description: fields.optional("description", string),
        needs: fields.optional("needs", needs).unwrap_or_default(),
        when: fields.optional("when", condition),
        join: fields
            .optional("join", choice(&[("all", JoinSpec::All), ("any", JoinSpec::Any)]))
            .unwrap_or_default(),
        input: fields.template("input"),
        retry: fields.given("retry", retry),
        timeout: fields.optional("timeout", duration),
        priority: fields.optional("priority", priority),
        cache: fields.optional("cache", cache),
        on_error: fields.optional("on_error", on_error).unwrap_or_default(),
        compensate: fields.optional("compensate", compensate).map(Box::new),
    };
    match &kind {
        Some(kind) => fields.close_with(|field| kinds::hint_for(kind, field)),
        // Which fields the node may have is not known.
        None => fields.leave(),
    }
    Some(match kind {
        Some(kind) => NodeSpec { kind, common },
        // The node's place in the graph is known. The variables that its input may use depend on the kind.
        None => NodeSpec { common: CommonSpec { input: None, ..common }, ..unreadable_node() },
    })
}

/// Decodes `needs`. A single need may be written without a list.
fn needs(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    match &tree.data {
        Data::String(id) => Some(vec![id.clone()]),
        _ => list_of(string)(tree, at, problems),
    }
}

fn condition(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<String> {
    match &tree.data {
        Data::Bool(value) => Some(value.to_string()),
        _ => string(tree, at, problems),
    }
}

fn retry(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<RetrySpec> {
    // `retry:` with nothing behind it asks for the defaults.
    if tree.data == Data::Null {
        return Some(RetrySpec::default());
    }
    let backoffs = &[
        ("exponential", BackoffSpec::Exponential),
        ("linear", BackoffSpec::Linear),
        ("fixed", BackoffSpec::Fixed),
    ];
    let mut fields = Fields::open(tree, at, problems)?;
    let retry = RetrySpec {
        max_attempts: fields.optional("max_attempts", positive),
        backoff: fields.optional("backoff", choice(backoffs)),
        initial: fields.optional("initial", duration),
        max: fields.optional("max", duration),
        jitter: fields.optional("jitter", boolean),
        non_retryable: fields.optional("non_retryable", list_of(string)).unwrap_or_default(),
    };
    fields.close();
    Some(retry)
}

fn priority(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<u8> {
    count(1, 10)(tree, at, problems).and_then(|value| u8::try_from(value).ok())
}

fn cache(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<CacheSpec> {
    let mut fields = Fields::open(tree, at, problems)?;
    let ttl = fields.required("ttl", duration);
    let key = fields.optional("key", template);
    fields.close();
    Some(CacheSpec { ttl: ttl?, key })
}

fn on_error(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<OnErrorSpec> {
    if let Data::Map(_) = tree.data {
        let mut fields = Fields::open(tree, at, problems)?;
        let target = fields.required("goto", string);
        fields.close();
        return target.map(OnErrorSpec::Goto);
    }
    if matches!(&tree.data, Data::String(text) if text == "goto") {
        problems.add(at, "`goto` needs the node to go to", Some("write `{ goto: <node> }`".to_owned()));
        return None;
    }
    choice(&[("fail", OnErrorSpec::Fail), ("continue", OnErrorSpec::Continue)])(tree, at, problems)
}

fn compensate(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<CompensateSpec> {
    let mut fields = Fields::open(tree, at, problems)?;
    let kind = kinds::kind(&mut fields);
    let common = CompensateCommon {
        description: fields.optional("description", string),
        input: fields.template("input"),
        retry: fields.given("retry", retry),
        timeout: fields.optional("timeout", duration),
        priority: fields.optional("priority", priority),
    };
    fields.close_with(|field| {
        ["needs", "when", "join", "on_error", "compensate", "cache"]
            .contains(&field)
            .then(|| "a compensation has no place of its own in the graph".to_owned())
    });
    Some(CompensateSpec { kind: kind?, common })
}

#[cfg(test)]
mod tests;
