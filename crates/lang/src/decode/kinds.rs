//! The fields that belong to one kind of node.

use switchyard_base::suggest;

use crate::limits;
use crate::problem::{At, Problems};
use crate::source::{Data, Tree};
use crate::spec::{
    BodySpec, CommandSpec, FunctionSpec, HitlSpec, HitlTimeout, HttpSpec, ItemError, KindSpec, LoopSpec,
    MapSpec, MethodSpec, RequestSpec, SleepSpec, TransformSpec, WaitSpec, WaitTimeout, WorkflowSpec,
};

use super::fields::Fields;
use super::leaves::{choice, count, list_of, positive, string, template, templates, word};
use super::{condition, definition, nodes};

/// Decodes the kind of a node. `None`, with a problem, if the kind or one of its fields cannot be read.
pub(super) fn kind(fields: &mut Fields<'_>) -> Option<KindSpec> {
    let name = fields.required("type", string)?;
    Some(match name.as_str() {
        "http" => KindSpec::Http(http(fields)?),
        "function" => KindSpec::Function(function(fields)?),
        "command" => KindSpec::Command(command(fields)?),
        "transform" => KindSpec::Transform(TransformSpec { value: fields.template("value") }),
        "sleep" => KindSpec::Sleep(sleep(fields)?),
        "wait" => KindSpec::Wait(wait(fields)?),
        "hitl" => KindSpec::Hitl(hitl(fields)),
        "map" => KindSpec::Map(map(fields)?),
        "loop" => KindSpec::Loop(r#loop(fields)?),
        "workflow" => KindSpec::Workflow(WorkflowSpec { body: body(fields)? }),
        unknown => {
            let hint = suggest::hint(unknown, &KindSpec::NAMES, "known types");
            fields.problem_at("type", format!("unknown node type `{unknown}`"), hint);
            return None;
        }
    })
}

/// A better hint than the nearest word for fields that people put in the wrong place.
pub(super) fn hint_for(kind: &KindSpec, field: &str) -> Option<String> {
    match kind {
        KindSpec::Http(_) if REQUEST_FIELDS.contains(&field) => {
            Some(format!("write it as `request: {{ {field}: … }}`"))
        }
        _ => None,
    }
}

/// Fields of `request` that people put beside it.
const REQUEST_FIELDS: [&str; 5] = ["url", "method", "headers", "query", "body"];

fn http(fields: &mut Fields<'_>) -> Option<HttpSpec> {
    let misplaced = REQUEST_FIELDS.into_iter().find(|field| fields.has(field));
    let request = match misplaced.filter(|_| !fields.has("request")) {
        Some(field) => {
            let hint = format!("write `{field}` inside of it: `request: {{ {field}: … }}`");
            fields.problem("missing field `request`".to_owned(), Some(hint));
            None
        }
        None => fields.required("request", request),
    };
    let expect_status = fields.optional("expect_status", statuses).unwrap_or_default();
    Some(HttpSpec { request: request?, expect_status })
}

fn request(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<RequestSpec> {
    let methods = &[
        ("GET", MethodSpec::Get),
        ("HEAD", MethodSpec::Head),
        ("POST", MethodSpec::Post),
        ("PUT", MethodSpec::Put),
        ("PATCH", MethodSpec::Patch),
        ("DELETE", MethodSpec::Delete),
        ("OPTIONS", MethodSpec::Options),
    ];
    let mut fields = Fields::open(tree, at, problems)?;
    let url = fields.required("url", string);
    let request = RequestSpec {
        method: fields.optional("method", choice(methods)).unwrap_or_default(),
        headers: fields.optional("headers", templates).unwrap_or_default(),
        query: fields.optional("query", templates).unwrap_or_default(),
        body: fields.template("body"),
        // A missing or invalid URL is already reported as a problem.
        url: url.unwrap_or_else(|| format!("https://{}", super::UNREADABLE)),
    };
    fields.close();
    Some(request)
}

fn statuses(tree: &Tree, at: &At<'_>, problems: &mut Problems) -> Option<Vec<u16>> {
    let status = |tree: &Tree, at: &At<'_>, problems: &mut Problems| {
        count(100, 599)(tree, at, problems).and_then(|value| u16::try_from(value).ok())
    };
    match &tree.data {
        Data::Number(_) => status(tree, at, problems).map(|status| vec![status]),
        _ => list_of(status)(tree, at, problems),
    }
}

fn function(fields: &mut Fields<'_>) -> Option<FunctionSpec> {
    let function = fields.required("function", string);
    let queue = fields.optional("queue", string);
    Some(FunctionSpec { function: function?, queue })
}

fn command(fields: &mut Fields<'_>) -> Option<CommandSpec> {
    let command = fields.required("command", list_of(word));
    let env = fields.optional("env", templates).unwrap_or_default();
    let cwd = fields.optional("cwd", string);
    Some(CommandSpec { command: command?, env, cwd })
}

fn sleep(fields: &mut Fields<'_>) -> Option<SleepSpec> {
    let duration = fields.optional("duration", word);
    let until = fields.optional("until", string);
    if duration.is_some() == until.is_some() {
        fields.problem("a `sleep` needs either `duration` or `until`".to_owned(), None);
        return None;
    }
    Some(SleepSpec { duration, until })
}

fn wait(fields: &mut Fields<'_>) -> Option<WaitSpec> {
    let choices = &[("fail", WaitTimeout::Fail), ("continue", WaitTimeout::Continue)];
    let signal = fields.required("signal", string);
    let on_timeout = fields.optional("on_timeout", choice(choices)).unwrap_or_default();
    needs_timeout(fields, on_timeout != WaitTimeout::default());
    Some(WaitSpec { signal: signal?, on_timeout })
}

fn hitl(fields: &mut Fields<'_>) -> HitlSpec {
    let choices =
        &[("approve", HitlTimeout::Approve), ("reject", HitlTimeout::Reject), ("fail", HitlTimeout::Fail)];
    let approver = fields.optional("approver", string);
    let prompt = fields.optional("prompt", string);
    let on_timeout = fields.optional("on_timeout", choice(choices)).unwrap_or_default();
    needs_timeout(fields, on_timeout != HitlTimeout::default());
    HitlSpec { approver, prompt, on_timeout }
}

fn needs_timeout(fields: &mut Fields<'_>, given: bool) {
    if given && !fields.has("timeout") {
        let hint = Some("add a `timeout`".to_owned());
        fields.problem_at("on_timeout", "`on_timeout` does nothing without `timeout`".to_owned(), hint);
    }
}

fn map(fields: &mut Fields<'_>) -> Option<MapSpec> {
    let choices = &[("fail", ItemError::Fail), ("continue", ItemError::Continue)];
    let items = fields.required("items", template);
    let concurrency = fields.optional("concurrency", positive);
    let on_item_error = fields.optional("on_item_error", choice(choices)).unwrap_or_default();
    let body = body(fields);
    Some(MapSpec { items: items?, concurrency, on_item_error, body: body? })
}

fn r#loop(fields: &mut Fields<'_>) -> Option<LoopSpec> {
    let until = fields.required("until", condition);
    let limit = count(1, limits::LOOP_ITERATIONS_MAX.into());
    let max_iterations = fields.optional("max_iterations", limit);
    let max_iterations = max_iterations.and_then(|value| u32::try_from(value).ok()?.try_into().ok());
    let body = body(fields);
    Some(LoopSpec { until: until?, max_iterations, body: body? })
}

fn body(fields: &mut Fields<'_>) -> Option<BodySpec> {
    const SOURCES: [&str; 4] = ["nodes", "workflow", "definition", "file"];
    let body = BodySpec {
        nodes: fields.optional("nodes", nodes),
        output: fields.template("output"),
        workflow: fields.optional("workflow", string),
        version: fields.optional("version", positive),
        definition: fields.optional("definition", definition).map(Box::new),
        file: fields.optional("file", string),
    };
    let given: Vec<&str> = SOURCES.into_iter().filter(|source| fields.has(source)).collect();
    match given.as_slice() {
        [] => {
            let hint = "give one of `nodes`, `workflow`, `definition` or `file`".to_owned();
            fields.problem("the node has no child workflow".to_owned(), Some(hint));
            return None;
        }
        [one] => {
            for (companion, of) in [("output", "nodes"), ("version", "workflow")] {
                if fields.has(companion) && *one != of {
                    fields.problem_at(
                        companion,
                        format!("`{companion}` goes with `{of}`, not with `{one}`"),
                        None,
                    );
                }
            }
        }
        [first, second, ..] => {
            fields.problem_at(second, format!("`{second}` and `{first}` cannot be given together"), None);
            return None;
        }
    }
    Some(body)
}
