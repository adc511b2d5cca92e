//! Compiles each kind of node.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;
use switchyard_core::ir::queue_name;

use crate::expr::{Expr, Refs, Vars, vars};
use crate::limits;
use crate::problem::{At, Problems};
use crate::program::{
    BUILTINS, Body, CompiledCache, CompiledCommand, CompiledFunction, CompiledHitl, CompiledHttp,
    CompiledKind, CompiledLoop, CompiledMap, CompiledNode, CompiledSleep, CompiledTransform, CompiledWait,
    CompiledWorkflow, bad_moment, moment, sleep_length,
};
use crate::spec::{BodySpec, Definition, FunctionSpec, HttpSpec, KindSpec, NodeSpec, SleepSpec};
use crate::template::{self, Template};

use super::reads::Reader;
use super::{Building, names, shapes};

/// A template that is written as a string, outside of any node.
pub(super) fn text_template(text: &str, allowed: Vars, at: &At<'_>, problems: &mut Problems) -> Template {
    Template::compile_at(&Value::String(text.to_owned()), allowed, at, problems, &mut |_, _| {})
}

impl Building<'_> {
    pub(super) fn step(
        &mut self,
        index: usize,
        id: &str,
        node: &NodeSpec,
        at: &At<'_>,
    ) -> Option<CompiledNode> {
        let reader = Reader::Step(index);
        let common = &node.common;
        let when = common.when.as_ref().map(|text| self.condition(reader, text, vars::NODE, &at.key("when")));
        let input = common
            .input
            .as_ref()
            .map(|input| self.template(reader, input, input_vars(&node.kind), &at.key("input")));
        let cache = common.cache.as_ref().map(|cache| CompiledCache {
            ttl: cache.ttl.0,
            key: cache
                .key
                .as_ref()
                .map(|key| self.template(reader, key, vars::NODE, &at.key("cache").key("key"))),
        });
        let kind = self.kind(reader, id, &node.kind, at);
        let timeout = common.timeout.map(|timeout| timeout.0);
        let when = match when {
            Some(when) => Some(when?),
            None => None,
        };
        let secrets = self.take_secrets();
        Some(CompiledNode { kind: kind?, when, input, timeout, cache, secrets })
    }

    pub(super) fn compensation(
        &mut self,
        index: usize,
        id: &str,
        node: &NodeSpec,
        at: &At<'_>,
    ) -> Option<CompiledNode> {
        let spec = node.common.compensate.as_deref()?;
        let reader = Reader::Compensation(index);
        let input = spec
            .common
            .input
            .as_ref()
            .map(|input| self.template(reader, input, input_vars(&spec.kind), &at.key("input")));
        let kind = self.kind(reader, id, &spec.kind, at);
        let timeout = spec.common.timeout.map(|timeout| timeout.0);
        let secrets = self.take_secrets();
        Some(CompiledNode { kind: kind?, when: None, input, timeout, cache: None, secrets })
    }

    fn kind(&mut self, reader: Reader, id: &str, kind: &KindSpec, at: &At<'_>) -> Option<CompiledKind> {
        Some(match kind {
            KindSpec::Http(spec) => CompiledKind::Http(self.http(reader, spec, at)),
            KindSpec::Function(spec) => CompiledKind::Function(self.function(spec, at)),
            KindSpec::Command(spec) => {
                if spec.command.is_empty() {
                    self.problems.add(&at.key("command"), "`command` needs at least the program", None);
                }
                CompiledKind::Command(CompiledCommand {
                    command: self.texts(reader, &spec.command, &at.key("command")),
                    env: self.call_templates(reader, &spec.env, &at.key("env")),
                    cwd: spec.cwd.as_ref().map(|cwd| self.text(reader, cwd, &at.key("cwd"))),
                })
            }
            KindSpec::Transform(spec) => CompiledKind::Transform(CompiledTransform {
                value: spec
                    .value
                    .as_ref()
                    .map(|value| self.template(reader, value, vars::NODE, &at.key("value"))),
            }),
            KindSpec::Sleep(spec) => CompiledKind::Sleep(self.sleep(reader, spec, at)?),
            KindSpec::Wait(spec) => CompiledKind::Wait(CompiledWait {
                signal: self.text(reader, &spec.signal, &at.key("signal")),
                on_timeout: spec.on_timeout,
            }),
            KindSpec::Hitl(spec) => CompiledKind::Hitl(CompiledHitl {
                approver: spec.approver.as_ref().map(|text| self.text(reader, text, &at.key("approver"))),
                prompt: spec.prompt.as_ref().map(|text| self.text(reader, text, &at.key("prompt"))),
                on_timeout: spec.on_timeout,
            }),
            KindSpec::Map(spec) => {
                let items = self.template(reader, &spec.items, vars::NODE, &at.key("items"));
                if items.as_constant().is_some_and(|items| !items.is_array()) {
                    let hint = Some("write a list or an expression that gives one".to_owned());
                    self.problems.add(&at.key("items"), "`items` is not a list", hint);
                }
                let body = self.body(id, &spec.body, at)?;
                let (concurrency, on_item_error) = (spec.concurrency, spec.on_item_error);
                CompiledKind::Map(CompiledMap { items, concurrency, on_item_error, body })
            }
            KindSpec::Loop(spec) => {
                let until = self.condition(reader, &spec.until, vars::LOOP_UNTIL, &at.key("until"));
                let body = self.body(id, &spec.body, at);
                let max_iterations = spec.max_iterations.map_or(limits::LOOP_ITERATIONS_DEFAULT, Into::into);
                CompiledKind::Loop(CompiledLoop { until: until?, max_iterations, body: body? })
            }
            KindSpec::Workflow(spec) => {
                CompiledKind::Workflow(CompiledWorkflow { body: self.body(id, &spec.body, at)? })
            }
        })
    }

    fn http(&mut self, reader: Reader, spec: &HttpSpec, at: &At<'_>) -> CompiledHttp {
        let at = &at.key("request");
        let request = &spec.request;
        let url = Value::String(request.url.clone());
        let url = self.template(reader, &url, vars::CALL, &at.key("url"));
        if let Some(Value::String(text)) = url.as_constant()
            && !(text.starts_with("http://") || text.starts_with("https://"))
        {
            let hint = Some("start it with `https://` or `http://`".to_owned());
            self.problems.add(&at.key("url"), format!("`{text}` is not a URL"), hint);
        }
        CompiledHttp {
            method: request.method,
            url,
            headers: self.call_templates(reader, &request.headers, &at.key("headers")),
            query: self.call_templates(reader, &request.query, &at.key("query")),
            body: request.body.as_ref().map(|body| self.template(reader, body, vars::CALL, &at.key("body"))),
            expect_status: spec.expect_status.clone(),
        }
    }

    fn function(&mut self, spec: &FunctionSpec, at: &At<'_>) -> CompiledFunction {
        const LETTERS: &str = "use letters, digits, `_`, `-`, `.` and `:`, at most 128";
        if !queue_name::is_function_name(&spec.function) {
            let hint = format!("{LETTERS}; a version follows after `@`, as in `enrich@2`");
            self.problems.add(&at.key("function"), "not a good name for a function", Some(hint));
        }
        if spec.queue.as_deref().is_some_and(|queue| !queue_name::is_queue_name(queue)) {
            self.problems.add(&at.key("queue"), "not a good name for a queue", Some(LETTERS.to_owned()));
        }
        let builtin = spec.queue.is_none() && BUILTINS.contains(&spec.function.as_str());
        CompiledFunction { function: spec.function.as_str().into(), builtin }
    }

    fn sleep(&mut self, reader: Reader, spec: &SleepSpec, at: &At<'_>) -> Option<CompiledSleep> {
        if let Some(text) = &spec.duration {
            let at = &at.key("duration");
            let template = self.text(reader, text, at);
            if let Some(Err(_)) = template.as_constant().filter(|value| !value.is_null()).map(sleep_length) {
                let error = text.parse::<switchyard_base::HumanDuration>().err();
                let (message, hint) =
                    error.map_or_else(Default::default, |error| (error.message, error.hint));
                self.problems.add(at, message, Some(hint));
            }
            return Some(CompiledSleep::For(template));
        }
        let at = &at.key("until");
        let template = self.text(reader, spec.until.as_deref()?, at);
        if let Some(Value::String(text)) = template.as_constant()
            && moment(text).is_none()
        {
            self.problems.add(at, bad_moment(text), None);
        }
        Some(CompiledSleep::Until(template))
    }

    fn body(&mut self, id: &str, spec: &BodySpec, at: &At<'_>) -> Option<Body> {
        if let Some(workflow) = &spec.workflow {
            names::check_workflow_name(workflow, &at.key("workflow"), self.problems);
            return Some(Body::Named { workflow: workflow.as_str().into(), version: spec.version });
        }
        if let Some(file) = &spec.file {
            let hint = "submit it with the CLI, which puts the file's content in place".to_owned();
            self.problems.add(&at.key("file"), format!("the file `{file}` is not here"), Some(hint));
            return None;
        }
        let child = match (&spec.definition, &spec.nodes) {
            (Some(definition), _) => {
                let at = at.key("definition");
                super::compile((**definition).clone(), &at, self.reading, self.depth + 1, self.problems)
            }
            (None, Some(nodes)) => {
                super::compile(self.child(id, nodes, spec), at, self.reading, self.depth + 1, self.problems)
            }
            (None, None) => None,
        };
        Some(Body::Inline(Arc::new(child?)))
    }

    fn child(&self, id: &str, nodes: &IndexMap<String, NodeSpec>, spec: &BodySpec) -> Definition {
        Definition {
            name: names::child_name(&self.definition.name, id),
            description: None,
            input: None,
            input_draft: None,
            nodes: nodes.clone(),
            output: spec.output.clone(),
            deadline: None,
            parallelism: None,
            concurrency: None,
            labels: IndexMap::new(),
            inherit_labels: self.definition.inherit_labels,
        }
    }

    fn condition(&mut self, reader: Reader, text: &str, allowed: Vars, at: &At<'_>) -> Option<Expr> {
        match template::condition(text, allowed) {
            Ok(expr) => {
                self.record(reader, at, expr.refs());
                Some(expr)
            }
            Err(error) => {
                self.problems.add(at, error.message, error.hint);
                None
            }
        }
    }

    pub(super) fn template(&mut self, reader: Reader, value: &Value, allowed: Vars, at: &At<'_>) -> Template {
        let mut found = Vec::new();
        let template = Template::compile_at(value, allowed, at, self.problems, &mut |at, refs| {
            found.push((at.steps(), refs.clone()));
        });
        for (steps, refs) in found {
            self.record(reader, &At::Remembered(&steps), &refs);
        }
        if self.reading.is_new() {
            template::refuse_lookalikes(value, allowed, at, self.problems);
        }
        template
    }

    fn take_secrets(&mut self) -> Vec<String> {
        let mut secrets = std::mem::take(&mut self.secrets);
        secrets.sort();
        secrets.dedup();
        secrets
    }

    fn record(&mut self, reader: Reader, at: &At<'_>, refs: &Refs) {
        self.mentions.record(reader, at, refs);
        for name in &refs.secrets {
            names::check_secret(name, at, self.problems);
            self.secrets.push(name.clone());
        }
        if self.reading.is_new() {
            for path in &refs.paths {
                shapes::check(path, self.definition, at, self.problems);
            }
        }
    }

    fn text(&mut self, reader: Reader, text: &str, at: &At<'_>) -> Template {
        self.template(reader, &Value::String(text.to_owned()), vars::NODE, at)
    }

    fn texts(&mut self, reader: Reader, texts: &[String], at: &At<'_>) -> Vec<Template> {
        texts.iter().enumerate().map(|(index, text)| self.text(reader, text, &at.index(index))).collect()
    }

    /// Compiles templates whose values are sent with a call, and which may therefore use secrets.
    fn call_templates(
        &mut self,
        reader: Reader,
        map: &IndexMap<String, Value>,
        at: &At<'_>,
    ) -> Vec<(String, Template)> {
        map.iter()
            .map(|(key, value)| (key.clone(), self.template(reader, value, vars::CALL, &at.key(key))))
            .collect()
    }
}

fn input_vars(kind: &KindSpec) -> Vars {
    match kind {
        KindSpec::Map(_) => vars::MAP_INPUT,
        KindSpec::Loop(_) => vars::LOOP_INPUT,
        _ => vars::NODE,
    }
}
