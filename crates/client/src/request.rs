//! Sends requests, and repeats them if that is safe.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use switchyard_api::Problem;
use switchyard_core::OperationId;

use crate::Error;
use crate::retry::{Backoff, Repeat};

const USER_AGENT: &str = concat!("switchyard-client/", env!("CARGO_PKG_VERSION"));

const CONNECT_WAIT_MAX: Duration = Duration::from_secs(5);

/// The time limit of a request: longer than the server's own limit for any request but a stream.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(130);

const TRIES_DEFAULT: u32 = 5;

/// The header that carries an operation id.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A client of one server. Cloning is cheap; clones share connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    pub(crate) base: Url,
    tries: u32,
    operation: Option<OperationId>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// Configures a [`Client`].
#[derive(Clone, Debug)]
#[must_use = "nothing is made until `build`"]
pub struct ClientBuilder {
    address: String,
    key: Option<String>,
    tries: u32,
    connect_wait: Duration,
}

impl ClientBuilder {
    /// Sets the API key of this program.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets how often a request is tried while the server does not answer and repeating is safe; the default is 5.
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries.max(1);
        self
    }

    /// Sets how long connecting may take; the default is 5 seconds.
    pub fn connect_timeout(mut self, wait: Duration) -> Self {
        self.connect_wait = wait;
        self
    }

    /// Creates the client. Sends nothing yet.
    pub fn build(self) -> Result<Client, Error> {
        let mut base = Url::parse(self.address.trim()).map_err(|_| Error::Address(self.address.clone()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(Error::Address(self.address));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        // Fails if the embedding program has already installed a provider, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(self.connect_wait)
            .tcp_nodelay(true)
            .default_headers(self.headers()?);
        if is_here(&base) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(Error::Setup)?;
        Ok(Client { http, base, tries: self.tries, operation: None })
    }

    fn headers(&self) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| Error::Key)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

/// Whether the address is on this machine; such requests use no proxy.
fn is_here(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Client {
    /// Creates a client of the server at this address, such as `http://127.0.0.1:7070`.
    pub fn new(address: &str) -> Result<Self, Error> {
        Self::builder(address).build()
    }

    /// Creates a builder, to set an API key or other limits.
    pub fn builder(address: &str) -> ClientBuilder {
        ClientBuilder {
            address: address.to_owned(),
            key: None,
            tries: TRIES_DEFAULT,
            connect_wait: CONNECT_WAIT_MAX,
        }
    }

    /// Returns a client that makes its changes with this id, to repeat one change whose outcome is unknown
    /// ([`Error::OutcomeUnknown`]). Without this, the client generates an id for every change.
    pub fn with_operation_id(&self, id: OperationId) -> Self {
        Self { operation: Some(id), ..self.clone() }
    }

    /// The address of the server.
    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    pub(crate) fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.request_with(method, path, &[])
    }

    pub(crate) fn request_with(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
    ) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.http.request(method, url)
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Error> {
        let request = self.request_with(Method::GET, path, query);
        self.send(request, Repeat::Harmless).await
    }

    /// Sends a POST request without an operation id, and reads the response.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
        repeat: Repeat,
    ) -> Result<T, Error> {
        let request = self.request(Method::POST, path).json(body);
        self.send(request, repeat).await
    }

    /// Makes a change, and reads the response.
    pub(crate) async fn change<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.read(&self.send_change(self.request(Method::POST, path).json(body)).await?.1)
    }

    /// Sends a change with an operation id, which makes it safe to repeat until the outcome is known.
    pub(crate) async fn send_change(&self, request: RequestBuilder) -> Result<(StatusCode, Bytes), Error> {
        self.send_as(request, self.operation_id()).await
    }

    /// The id of the next change.
    pub(crate) fn operation_id(&self) -> OperationId {
        self.operation.clone().unwrap_or_else(|| OperationId::drawn(rand::random()))
    }

    pub(crate) async fn send_as(
        &self,
        request: RequestBuilder,
        operation: OperationId,
    ) -> Result<(StatusCode, Bytes), Error> {
        let request = request.header(IDEMPOTENCY_KEY, operation.as_str());
        let (answer, unknown) = self.send_until_answered(request, Repeat::Harmless).await;
        match self.checked(answer) {
            Err(source) if unknown => Err(Error::OutcomeUnknown { operation, source: Box::new(source) }),
            checked => checked,
        }
    }

    /// Sends a request, repeats it if that is safe, and reads the response.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        repeat: Repeat,
    ) -> Result<T, Error> {
        self.read(&self.send_for_answer(request, repeat).await?.1)
    }

    pub(crate) async fn send_for_answer(
        &self,
        request: RequestBuilder,
        repeat: Repeat,
    ) -> Result<(StatusCode, Bytes), Error> {
        let (answer, _) = self.send_until_answered(request, repeat).await;
        self.checked(answer)
    }

    /// Sends a request until the server answers. Returns the last answer, and whether a try may have taken effect
    /// without an answer.
    async fn send_until_answered(&self, request: RequestBuilder, repeat: Repeat) -> (Answer, bool) {
        let request = request.timeout(REQUEST_WAIT_MAX);
        let mut backoff = Backoff::default();
        let (mut tried, mut unknown) = (1, false);
        loop {
            // Bodies are in memory, so a request can always be cloned.
            let (copy, last) = match request.try_clone() {
                Some(copy) => (copy, tried >= self.tries),
                None => return (whole(request).await, true),
            };
            let answer = whole(copy).await;
            let told = Told::by(&answer);
            unknown |= told == Told::Nothing;
            let again = match told {
                Told::Answer => return (answer, false),
                Told::NotDone => true,
                Told::Nothing => repeat == Repeat::Harmless,
            };
            if !again || last {
                return (answer, unknown);
            }
            tried += 1;
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    pub(crate) fn checked(&self, answer: Answer) -> Result<(StatusCode, Bytes), Error> {
        match answer.map_err(|source| self.unreachable(source))? {
            answer if answer.0.is_success() => Ok(answer),
            (status, bytes) => Err(self.problem(status, &bytes)),
        }
    }

    pub(crate) fn unreachable(&self, source: reqwest::Error) -> Error {
        Error::Unreachable { address: self.address().to_owned(), source: source.without_url() }
    }

    pub(crate) async fn refusal(&self, response: Response) -> Error {
        let status = response.status();
        self.problem(status, &response.bytes().await.unwrap_or_default())
    }

    fn problem(&self, status: StatusCode, bytes: &[u8]) -> Error {
        match serde_json::from_slice::<Problem>(bytes) {
            Ok(problem) => Error::Refused(Box::new(problem)),
            Err(_) => self.strange(format!("status {status} without a problem document")),
        }
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(bytes).map_err(|error| self.strange(error.to_string()))
    }

    pub(crate) fn strange(&self, what: String) -> Error {
        Error::Strange { address: self.address().to_owned(), what }
    }
}

pub(crate) type Answer = Result<(StatusCode, Bytes), reqwest::Error>;

/// Sends a request and reads the whole response: the connection may break in the middle of it.
pub(crate) async fn whole(request: RequestBuilder) -> Answer {
    let response = request.send().await?;
    Ok((response.status(), response.bytes().await?))
}

/// What is known about the effect of a request from its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// The server answered the request.
    Answer,
    /// The server did nothing, and a repeated request may succeed.
    NotDone,
    /// Unknown: the request may have taken effect.
    Nothing,
}

impl Told {
    fn by(answer: &Answer) -> Self {
        match answer {
            Err(error) if error.is_connect() => Self::NotDone,
            // The request was sent, and then the connection broke or the time ran out.
            Err(_) => Self::Nothing,
            Ok((StatusCode::SERVICE_UNAVAILABLE, body)) if says_not_done(body) => Self::NotDone,
            // A gateway may have passed the request on.
            Ok((
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT,
                _,
            )) => Self::Nothing,
            Ok(_) => Self::Answer,
        }
    }
}

/// Whether the server's problem document says for certain that nothing was changed.
fn says_not_done(body: &[u8]) -> bool {
    serde_json::from_slice::<Problem>(body).is_ok_and(|problem| problem.code == "store_unavailable")
}

/// Reads the list in the field `name` of a response.
pub(crate) fn list<T: DeserializeOwned>(mut answer: Value, name: &str) -> Result<Vec<T>, serde_json::Error> {
    serde_json::from_value(answer.get_mut(name).map(Value::take).unwrap_or_default())
}
