//! Checks the fields in paths where the possible fields are known: `run.idd`, `nodes.a.outptu`.

use serde_json::Value;
use switchyard_base::suggest;

use crate::expr::scope_fields;
use crate::problem::{At, Problems};
use crate::spec::{Definition, InputDraft, KindSpec};

/// Reports the first field of a path that cannot exist.
pub(super) fn check(path: &[String], definition: &Definition, at: &At<'_>, problems: &mut Problems) {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["run", field, ..] => known("run", field, &scope_fields::RUN, at, problems),
        ["input", field, ..] => {
            if let Some(fields) = closed_input(definition) {
                known("input", field, &fields, at, problems);
            }
        }
        ["nodes", id, field, rest @ ..] => {
            let of = format!("nodes.{id}");
            known(&of, field, &scope_fields::NODE, at, problems);
            let kind = definition.nodes.get(*id).map(|node| &node.kind);
            if let (Some(field_of), Some(fields)) = (rest.first(), inside(field, kind)) {
                known(&format!("{of}.{field}"), field_of, fields, at, problems);
            }
        }
        _ => {}
    }
}

fn known(of: &str, field: &str, fields: &[&str], at: &At<'_>, problems: &mut Problems) {
    if !fields.contains(&field) {
        let shown: String = field.chars().take(80).collect();
        let hint = suggest::hint(field, fields, "known fields");
        problems.add(at, format!("`{of}` has no field `{shown}`"), hint);
    }
}

/// The fields of a node's output or error, if its kind determines them.
fn inside(field: &str, kind: Option<&KindSpec>) -> Option<&'static [&'static str]> {
    match (field, kind?) {
        ("error", _) => Some(&scope_fields::ERROR),
        ("output", KindSpec::Http(_)) => Some(&["status", "headers", "body"]),
        ("output", KindSpec::Hitl(_)) => Some(&["decision", "by", "comment"]),
        _ => None,
    }
}

/// The fields of an input whose schema allows no others.
fn closed_input(definition: &Definition) -> Option<Vec<&str>> {
    let schema =
        definition.input.as_ref().filter(|_| definition.input_draft == Some(InputDraft::Draft202012))?;
    let open =
        ["$ref", "$dynamicRef", "allOf", "patternProperties"].iter().any(|key| schema.get(key).is_some());
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let properties = schema.get("properties")?.as_object()?;
    (closed && !open).then(|| properties.keys().map(String::as_str).collect())
}
