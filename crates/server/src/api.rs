//! Registers routes together with their documentation, so that no route is undocumented.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, delete, get, post, put};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use switchyard_core::OperationId;

use crate::ServerState;
use crate::access;
use crate::problem::Document;

/// The routes registered so far, and their OpenAPI paths and schemas.
pub(crate) struct Api {
    router: Router<ServerState>,
    paths: Map<String, Value>,
    schemas: SchemaGenerator,
}

/// The documentation of one method on one path.
pub(crate) struct Operation {
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    description: Option<&'static str>,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Map<String, Value>,
    problems: Vec<u16>,
    keyless: bool,
}

impl Api {
    pub(crate) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self { router: Router::new(), paths: Map::new(), schemas: settings.into_generator() }
    }

    pub(crate) fn operation(&self, tag: &'static str, id: &'static str, summary: &'static str) -> Operation {
        Operation {
            id,
            tag,
            summary,
            description: None,
            parameters: Vec::new(),
            body: None,
            answers: Map::new(),
            problems: Vec::new(),
            keyless: false,
        }
    }

    pub(crate) fn get<H, T>(&mut self, path: &str, operation: Operation, handler: H)
    where
        H: Handler<T, ServerState>,
        T: 'static,
    {
        self.route(path, "get", operation, get(handler));
    }

    pub(crate) fn post<H, T>(&mut self, path: &str, operation: Operation, handler: H)
    where
        H: Handler<T, ServerState>,
        T: 'static,
    {
        self.route(path, "post", operation, post(handler));
    }

    pub(crate) fn put<H, T>(&mut self, path: &str, operation: Operation, handler: H)
    where
        H: Handler<T, ServerState>,
        T: 'static,
    {
        self.route(path, "put", operation, put(handler));
    }

    pub(crate) fn delete<H, T>(&mut self, path: &str, operation: Operation, handler: H)
    where
        H: Handler<T, ServerState>,
        T: 'static,
    {
        self.route(path, "delete", operation, delete(handler));
    }

    fn route(&mut self, path: &str, method: &str, operation: Operation, handler: MethodRouter<ServerState>) {
        let changes = method != "get" && !operation.keyless;
        let operation = if changes { operation.named_by_its_caller() } else { operation };
        let described = operation.describe(path, &mut self.schemas);
        let methods = self.paths.entry(path).or_insert_with(|| json!({}));
        methods[method] = described;
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, handler);
    }

    pub(crate) fn schema<T: JsonSchema>(&mut self) -> Value {
        self.schemas.subschema_for::<T>().to_value()
    }

    pub(crate) fn finish(mut self) -> (Router<ServerState>, Value) {
        let schemas = self.schemas.take_definitions(true);
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Switchyard",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Durable workflows over HTTP. Failures are RFC 9457 problem documents whose `code` \
                                is stable.",
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            },
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {
                    "key": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "An API key, `swk_…`. Not wanted by a server for which no key was ever made.",
                    },
                },
            },
            "security": [{ "key": [] }, {}],
        });
        (self.router, document)
    }
}

impl Operation {
    pub(crate) fn description(mut self, text: &'static str) -> Self {
        self.description = Some(text);
        self
    }

    /// Documents every field of `T` as a query parameter.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let mut field = field.clone();
            let description = field.as_object_mut().and_then(|field| field.remove("description"));
            self.parameters.push(json!({
                "name": name,
                "in": "query",
                "required": required.iter().any(|one| one == name),
                "description": description,
                "schema": field,
            }));
        }
        self
    }

    pub(crate) fn header(mut self, name: &str, description: &str, schema: Value) -> Self {
        let header = json!({"name": name, "in": "header", "required": false, "description": description, "schema": schema});
        self.parameters.push(header);
        self
    }

    /// The operation takes no `Idempotency-Key`: it changes nothing, or a claim identifies its change.
    pub(crate) fn keyless(mut self) -> Self {
        self.keyless = true;
        self
    }

    fn named_by_its_caller(self) -> Self {
        let schema = json!({
            "type": "string",
            "minLength": 1,
            "maxLength": OperationId::CHARS_MAX,
            "pattern": "^[!-~]([ -~]*[!-~])?$",
        });
        self.header(
            "Idempotency-Key",
            "An id of the caller's choice. The same request with the same id takes effect once, however often it is sent, \
             and is answered what it came to; another request with it is refused",
            schema,
        )
        .problems([400, 409])
    }

    /// Documents a JSON body.
    pub(crate) fn body(mut self, schema: Value, required: bool) -> Self {
        self.body = Some(json!({
            "required": required,
            "content": { "application/json": { "schema": schema } },
        }));
        self.problems([400, 408, 413, 415, 422])
    }

    pub(crate) fn answer(self, status: u16, description: &str, schema: Value) -> Self {
        self.answer_as(status, description, json!({ "application/json": { "schema": schema } }))
    }

    pub(crate) fn answer_as(mut self, status: u16, description: &str, content: Value) -> Self {
        self.answers.insert(status.to_string(), json!({ "description": description, "content": content }));
        self
    }

    pub(crate) fn empty_answer(mut self, status: u16, description: &str) -> Self {
        self.answers.insert(status.to_string(), json!({ "description": description }));
        self
    }

    pub(crate) fn problems<const N: usize>(mut self, statuses: [u16; N]) -> Self {
        self.problems.extend(statuses);
        self
    }

    fn describe(mut self, path: &str, schemas: &mut SchemaGenerator) -> Value {
        let problem = schemas.subschema_for::<Document<'_>>().to_value();
        // Every operation can get a bad request, meet a bug, or find the store unavailable.
        self.problems.extend([400, 500, 503, 504]);
        let public = access::PUBLIC.contains(&path);
        if !public {
            self.problems.extend([401, 403]);
        }
        let problems = std::mem::take(&mut self.problems);
        for (status, what) in PROBLEMS.iter().filter(|(status, _)| problems.contains(status)) {
            let content = json!({ "application/problem+json": { "schema": problem } });
            self = self.answer_as(*status, what, content);
        }
        let mut parameters: Vec<Value> = path_parameters(path).collect();
        parameters.append(&mut self.parameters);
        let mut described = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "parameters": parameters,
            "responses": self.answers,
        });
        if public {
            described["security"] = json!([]);
        }
        if let Some(text) = self.description {
            described["description"] = text.into();
        }
        if let Some(body) = self.body {
            described["requestBody"] = body;
        }
        described
    }
}

/// The description of each error status.
const PROBLEMS: [(u16, &str); 14] = [
    (400, "The request cannot be read: an id, a query or JSON that is not one"),
    (401, "An API key is wanted, and none or a wrong one was sent"),
    (403, "The request names another machine in `Host`, or comes from a page of another origin"),
    (404, "There is no such thing"),
    (406, "None of the accepted types can be answered"),
    (408, "The body took too long to arrive"),
    (
        409,
        "The state of what it is about does not allow it, or its `Idempotency-Key` was used for another request; \
           nothing has changed",
    ),
    (413, "The body is too large"),
    (415, "The body is not JSON"),
    (422, "The body is JSON, but not valid: `problems` says where"),
    (426, "The address is that of a WebSocket, and the request asks for none"),
    (500, "A mistake of the server"),
    (
        503,
        "The store does not answer. `store_unavailable`: the request changed nothing. `outcome_unknown`: whether it did \
           is not known; `operation` is what to repeat it with",
    ),
    (504, "It took too long"),
];

fn path_parameters(path: &str) -> impl Iterator<Item = Value> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).map(|name| {
        let mut schema = json!({ "type": "string", "minLength": 1 });
        if name == "run" {
            schema = json!({ "type": "string", "pattern": "^run_[0-7][0-9a-hjkmnp-tv-z]{25}$" });
        }
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    })
}
