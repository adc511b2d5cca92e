//! `http`: calls a URL.

mod address;
mod redirect;
mod retry_after;

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use reqwest::{ClientBuilder, Method, Request, Response, StatusCode, Url};
use serde_json::{Map, Value, json};
use switchyard_core::NodeError;
use switchyard_lang::Template;
use switchyard_lang::program::CompiledHttp;
use switchyard_lang::spec::MethodSpec;

use super::Call;
use super::content::{CONTENT_BYTES_MAX, excerpt, text_or_base64};
use crate::secrets::Revealed;
use redirect::{Origin, REDIRECTS_MAX};
use retry_after::retry_after;

pub use address::Egress;
#[cfg(test)]
pub(super) use address::Resolver;

const USER_AGENT: &str = concat!("switchyard/", env!("CARGO_PKG_VERSION"));
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// How many characters of an error response's body are shown, and how many bytes are read for that.
const SHOWN_CHARS_MAX: usize = 200;
const SHOWN_BYTES_MAX: usize = 4 * 1024;

/// A client builder with this process's TLS. It sets no timeout: the node's timeout covers the whole call.
pub(super) fn client() -> ClientBuilder {
    // The embedding program may have installed another provider already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::limited(REDIRECTS_MAX))
}

/// The HTTP client of `http` nodes: it connects only where [`Egress`] permits, and follows no redirects itself.
#[derive(Clone, Debug)]
pub struct HttpCalls {
    client: reqwest::Client,
    egress: Arc<Egress>,
}

impl HttpCalls {
    /// Fails if TLS cannot be set up on this machine.
    pub fn new(egress: Egress) -> Result<Self, reqwest::Error> {
        Self::with(client(), egress)
    }

    pub(super) fn with(client: ClientBuilder, egress: Egress) -> Result<Self, reqwest::Error> {
        let egress = Arc::new(egress);
        let resolver = Arc::new(address::Resolver(egress.clone()));
        let client = client.redirect(reqwest::redirect::Policy::none()).dns_resolver(resolver).build()?;
        Ok(Self { client, egress })
    }

    /// Sends a request and follows redirects. Also returns the final target.
    async fn send(&self, mut request: Request) -> Result<(Target, Response), NodeError> {
        for _ in 0..=REDIRECTS_MAX {
            let target = Target::of(&request);
            self.egress.check_literal(request.url()).map_err(|refused| target.bad_address(refused))?;
            let origin = Origin::of(&request);
            let response = self.client.execute(request).await.map_err(|error| target.failed(error))?;
            match origin.next(&response, &target)? {
                Some(next) => request = next,
                None => return Ok((target, response)),
            }
        }
        Err(redirect::too_many(&Target::of(&request)))
    }
}

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledHttp) -> Result<Value, NodeError> {
    let request = request(call, spec).await?;
    let (target, mut response) = call.services.http.send(request).await?;
    if !is_expected(spec, response.status()) {
        let wait = retry_after(response.status(), response.headers(), call.services.clock.now());
        return Err(NodeError { retry_after: wait, ..target.refused(&mut response, call.secrets).await });
    }
    let body = call.secrets.redact_bytes(read(&target, &mut response).await?);
    Ok(output(&response, body))
}

async fn request(call: &Call<'_>, spec: &CompiledHttp) -> Result<Request, NodeError> {
    let url = url(call, spec).await?;
    let mut headers = headers(call, spec).await?;
    if !headers.contains_key(IDEMPOTENCY_KEY) {
        headers.insert(IDEMPOTENCY_KEY, header_value("idempotency-key", &call.idempotency_key())?);
    }
    continue_trace(call, &mut headers)?;
    let body = body(call, spec).await?;
    if let Some(body) = &body
        && !headers.contains_key(CONTENT_TYPE)
    {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(body.content_type));
    }
    // Through the builder, because it turns a name and password in the URL into a header.
    let mut builder = call.services.http.client.request(method(spec.method), url).headers(headers);
    if let Some(body) = body {
        builder = builder.body(body.bytes);
    }
    builder.build().map_err(|error| bad_url(cause(&error.without_url())))
}

/// The called service joins the run's trace, unless the workflow sets its own headers.
fn continue_trace(call: &Call<'_>, headers: &mut HeaderMap) -> Result<(), NodeError> {
    if headers.contains_key(TRACEPARENT) {
        return Ok(());
    }
    if let Some(trace) = call.services.observe.outgoing(call.task) {
        headers.insert(TRACEPARENT, header_value("traceparent", &trace.traceparent)?);
        if let Some(state) = &trace.tracestate {
            headers.insert(TRACESTATE, header_value("tracestate", state)?);
        }
    }
    Ok(())
}

fn method(method: MethodSpec) -> Method {
    match method {
        MethodSpec::Get => Method::GET,
        MethodSpec::Head => Method::HEAD,
        MethodSpec::Post => Method::POST,
        MethodSpec::Put => Method::PUT,
        MethodSpec::Patch => Method::PATCH,
        MethodSpec::Delete => Method::DELETE,
        MethodSpec::Options => Method::OPTIONS,
    }
}

async fn url(call: &Call<'_>, spec: &CompiledHttp) -> Result<Url, NodeError> {
    let text = call.render_text(&spec.url).await?;
    let bad = |why: &str| bad_url(format!("`{}` {why}", without_userinfo(&text)));
    let mut url = Url::parse(&text).map_err(|error| bad(&format!("is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("is not a URL with `http` or `https`"));
    }
    for (name, template) in &spec.query {
        if let Some(value) = text_unless_null(call, template).await? {
            url.query_pairs_mut().append_pair(name, &value);
        }
    }
    Ok(url)
}

fn bad_url(message: impl Into<String>) -> NodeError {
    NodeError::permanent("http_url", message.into())
}

/// The end of a text that is not a valid URL: text in front of an `@` is not shown.
fn without_userinfo(text: &str) -> String {
    let shown = text.split('?').next().unwrap_or_default();
    let shown = shown.rsplit('@').next().unwrap_or_default();
    excerpt(shown.as_bytes(), SHOWN_CHARS_MAX)
}

async fn headers(call: &Call<'_>, spec: &CompiledHttp) -> Result<HeaderMap, NodeError> {
    let mut headers = HeaderMap::with_capacity(spec.headers.len() + 2);
    for (name, template) in &spec.headers {
        let Some(value) = text_unless_null(call, template).await? else { continue };
        let bad = |why: &str| NodeError::permanent("http_header", format!("header `{name}` {why}"));
        let header: HeaderName = name.parse().map_err(|_| bad("is not a name for a header"))?;
        // The client sets the length: a wrong one would let a body pass for the next request.
        if header == CONTENT_LENGTH || header == TRANSFER_ENCODING {
            return Err(bad("cannot be set: it follows from the body"));
        }
        let mut sent = header_value(name, &value)?;
        // Redirects to another origin drop sensitive headers.
        sent.set_sensitive(call.secrets.is_in(value.as_bytes()));
        headers.insert(header, sent);
    }
    Ok(headers)
}

/// Builds a header value. Error messages omit the value, because it may be a secret.
fn header_value(name: &str, value: &str) -> Result<HeaderValue, NodeError> {
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        let message = format!("the value of header `{name}` has characters that a header cannot have");
        NodeError::permanent("http_header", message)
    })
}

async fn text_unless_null(call: &Call<'_>, template: &Template) -> Result<Option<String>, NodeError> {
    Ok(match call.render(template).await? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

struct Body {
    bytes: Vec<u8>,
    content_type: &'static str,
}

/// The body as written, or the node's input for a method that has a body.
async fn body(call: &Call<'_>, spec: &CompiledHttp) -> Result<Option<Body>, NodeError> {
    let has_body = matches!(spec.method, MethodSpec::Post | MethodSpec::Put | MethodSpec::Patch);
    let input = call.node.input.as_ref().filter(|_| has_body);
    let Some(template) = spec.body.as_ref().or(input) else { return Ok(None) };
    Ok(Some(match call.render(template).await? {
        Value::String(text) => Body { bytes: text.into_bytes(), content_type: "text/plain; charset=utf-8" },
        json => Body { bytes: json.to_string().into_bytes(), content_type: "application/json" },
    }))
}

fn is_expected(spec: &CompiledHttp, status: StatusCode) -> bool {
    match spec.expect_status.as_slice() {
        [] => status.is_success(),
        expected => expected.contains(&status.as_u16()),
    }
}

async fn read(target: &Target, response: &mut Response) -> Result<Vec<u8>, NodeError> {
    let too_large = || {
        let message = format!("{target} answered with more than {CONTENT_BYTES_MAX} bytes");
        NodeError::permanent("response_too_large", message)
    };
    if response.content_length().is_some_and(|bytes| bytes > CONTENT_BYTES_MAX as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| target.failed(error))? {
        if body.len() + chunk.len() > CONTENT_BYTES_MAX {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn output(response: &Response, body: Vec<u8>) -> Value {
    json!({
        "status": response.status().as_u16(),
        "headers": header_output(response.headers()),
        "body": body_output(response.headers(), body),
    })
}

/// The headers as JSON, with names in lowercase. Values of a repeated header are joined, as RFC 9110 allows.
fn header_output(headers: &HeaderMap) -> Value {
    let mut map = Map::with_capacity(headers.keys_len());
    for name in headers.keys() {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        map.insert(name.as_str().to_owned(), Value::String(values.join(", ")));
    }
    Value::Object(map)
}

fn body_output(headers: &HeaderMap, body: Vec<u8>) -> Value {
    let json = is_json(headers).then(|| serde_json::from_slice(&body).ok()).flatten();
    json.unwrap_or_else(|| text_or_base64(body))
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// The target of a call for messages: without the name, the password and the query, which may be secret.
struct Target {
    method: Method,
    url: Url,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, excerpt(self.url.as_str().as_bytes(), SHOWN_CHARS_MAX))
    }
}

impl Target {
    fn of(request: &Request) -> Self {
        let mut url = request.url().clone();
        // These can only fail for URLs without a host, which have no name and password.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        Self { method: request.method().clone(), url }
    }

    fn bad_address(&self, refused: address::Refused) -> NodeError {
        NodeError::permanent("http_address", format!("{self}: {refused}"))
    }

    /// The error for a missing or incomplete response.
    fn failed(&self, error: reqwest::Error) -> NodeError {
        if let Some(refused) = address::Refused::behind(&error) {
            return self.bad_address(refused);
        }
        let error = error.without_url();
        let message = format!("{self}: {}", cause(&error));
        if error.is_builder() {
            bad_url(message)
        } else if error.is_connect() || is_io(&error) {
            NodeError::retryable("http_connect", message)
        } else {
            NodeError::retryable("http_protocol", message)
        }
    }

    /// The error for a response that does not count as success.
    async fn refused(&self, response: &mut Response, secrets: &Revealed) -> NodeError {
        let status = response.status();
        let shown = excerpt(&secrets.redact_bytes(beginning(response).await), SHOWN_CHARS_MAX);
        let mut message = format!("{self} answered {}", status.as_u16());
        for (separator, part) in
            [(" ", status.canonical_reason().unwrap_or_default()), (": ", shown.as_str())]
        {
            if !part.is_empty() {
                message.push_str(separator);
                message.push_str(part);
            }
        }
        match may_pass(status) {
            true => NodeError::retryable("http_status", message),
            false => NodeError::permanent("http_status", message),
        }
    }
}

fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

/// The beginning of the body, for messages. A broken body does not matter beside the status.
async fn beginning(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < SHOWN_BYTES_MAX
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body
}

/// The innermost error: the outer ones only say that a request failed.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        innermost = inner.to_string();
        source = inner.source();
    }
    innermost
}

/// Whether the connection broke, rather than carried something that is not HTTP.
fn is_io(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(inner) = source {
        if inner.is::<std::io::Error>() {
            return true;
        }
        source = inner.source();
    }
    false
}
