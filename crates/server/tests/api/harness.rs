//! A real server on a free port, and helpers for requests to it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use switchyard_core::{RunId, Timestamp};
use switchyard_host::embedded::{Embedded, Options};
use switchyard_server::{Limits, ServerState, serve};
use switchyard_store::ManualClock;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than any step takes: a stuck test fails instead of hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
    pub(crate) fixture: Embedded,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    pub(crate) data: PathBuf,
    _folder: Option<TempDir>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a server with a clock that stands still.
    pub(crate) async fn with_clock() -> (Self, ManualClock) {
        let clock = ManualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
        let server = Self::with(|options| options.clock = Arc::new(clock.clone())).await;
        (server, clock)
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, change).await
    }

    /// Starts a server with limits that are short enough for a test.
    pub(crate) async fn with_limits(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut server =
            Self::serve(folder.path(), listener, |_| {}, |state| state.with_limits(limits)).await;
        server._folder = Some(folder);
        server
    }

    /// Starts a server that admits web pages of these origins.
    pub(crate) async fn with_cors_origins(origins: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut server =
            Self::serve(folder.path(), listener, |_| {}, |state| state.with_cors_origins(origins)).await;
        server._folder = Some(folder);
        server
    }

    pub(crate) async fn on(listener: TcpListener, change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self::open(folder.path(), listener, change).await;
        server._folder = Some(folder);
        server
    }

    async fn open(data: &Path, listener: TcpListener, change: impl FnOnce(&mut Options)) -> Self {
        Self::serve(data, listener, change, |state| state).await
    }

    async fn serve(
        data: &Path,
        listener: TcpListener,
        change: impl FnOnce(&mut Options),
        set: impl FnOnce(ServerState) -> ServerState,
    ) -> Self {
        let mut options = Options::new(data);
        options.leave_functions = true;
        change(&mut options);
        let fixture = Embedded::open(options).await.unwrap();
        fixture.work();
        let state = set(ServerState::new(fixture.engine().clone(), fixture.services().clone()));
        let stop = CancellationToken::new();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, state, stop.clone().cancelled_owned()));
        let client = client();
        Self { address, client, fixture, stop, serving, data: data.to_owned(), _folder: None }
    }

    /// Restarts the server with the same folder and port.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| {}).await
    }

    pub(crate) async fn restart_with(self, change: impl FnOnce(&mut Options)) -> Self {
        let Self { address, fixture, stop, serving, data, _folder, .. } = self;
        stop.cancel();
        serving.await.unwrap();
        fixture.shut_down(Duration::ZERO).await;
        let listener = bind(address).await;
        let mut server = Self::open(&data, listener, change).await;
        server._folder = _folder;
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.client.get(self.url(path)).send().await.unwrap()).await
    }

    /// Gets a page of JSON from a route that can also stream.
    pub(crate) async fn get_json(&self, path: &str) -> Answer {
        let request = self.client.get(self.url(path)).header("accept", "application/json");
        Answer::of(request.send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.client.post(self.url(path)).json(&body).send().await.unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.client.put(self.url(path)).json(&body).send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.client.delete(self.url(path)).send().await.unwrap()).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, kind: Option<&str>, body: Vec<u8>) -> Answer {
        let mut request = self.client.request(method, self.url(path)).body(body);
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        Answer::of(request.send().await.unwrap()).await
    }

    pub(crate) async fn submit(&self, workflow: Value, input: Value) -> String {
        let answer = self.post("/v1/runs", json!({ "workflow": workflow, "input": input })).await;
        answer.expect(202)["run_id"].as_str().unwrap().to_owned()
    }

    /// Waits until a run's history has an event of this kind.
    pub(crate) async fn until(&self, run: &str, kind: &str) {
        let mut follow = self.fixture.engine().follow(run.parse().unwrap(), 0);
        let seen = tokio::time::timeout(PATIENCE, async {
            while !follow.next().await.unwrap().iter().any(|event| event.kind.name() == kind) {}
        });
        seen.await.unwrap_or_else(|_| panic!("{run} has no {kind}"));
    }

    /// Waits until the run has ended, and returns it.
    pub(crate) async fn end(&self, run: &str) -> Value {
        let id: RunId = run.parse().unwrap();
        let ended = tokio::time::timeout(PATIENCE, self.fixture.engine().wait_for_end(id)).await;
        ended.unwrap_or_else(|_| panic!("{run} does not end")).unwrap();
        self.get(&format!("/v1/runs/{run}")).await.expect(200)
    }
}

/// Binds a port that this test used a moment ago; only closing connections can still occupy it.
async fn bind(address: SocketAddr) -> TcpListener {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(128).unwrap()
}

/// A client that sends this key with every request.
pub(crate) fn client_with(key: &str) -> Client {
    let mut value = reqwest::header::HeaderValue::try_from(format!("Bearer {key}")).unwrap();
    value.set_sensitive(true);
    let headers = reqwest::header::HeaderMap::from_iter([(reqwest::header::AUTHORIZATION, value)]);
    Client::builder().no_proxy().timeout(PATIENCE).default_headers(headers).build().unwrap()
}

pub(crate) fn client() -> Client {
    // Fails if another test has installed a provider, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().timeout(PATIENCE).build().unwrap()
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        let status = response.status();
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        let text = response.text().await.unwrap();
        let json = kind.as_deref().is_some_and(|kind| kind.contains("json"));
        let body: Value =
            if json { serde_json::from_str(&text).unwrap() } else { Value::String(text.clone()) };
        if status.is_client_error() || status.is_server_error() {
            assert_eq!(kind.as_deref(), Some("application/problem+json"), "{text}");
            assert_eq!(body["status"], status.as_u16());
            assert_eq!(body["type"], format!("urn:switchyard:problem:{}", body["code"].as_str().unwrap()));
            assert!(!body["title"].as_str().unwrap().is_empty());
            assert!(!body["detail"].as_str().unwrap().is_empty());
        }
        Self { status, body }
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self.body
    }

    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status.as_u16(), self.body["code"].as_str()), (status, Some(code)), "{}", self.body);
        self.body
    }
}

/// A workflow that returns a greeting.
pub(crate) fn hello() -> Value {
    json!({
        "name": "hello",
        "input": { "type": "object", "properties": { "name": { "type": "string", "default": "world" } } },
        "nodes": { "greet": { "type": "transform", "value": { "greeting": "Hello, ${{ input.name }}!" } } },
    })
}

/// A workflow whose one node a worker has to call.
pub(crate) fn one_function(extra: Value) -> Value {
    let mut node = json!({ "type": "function", "function": "double", "input": { "n": "${{ input.n }}" } });
    for (name, value) in extra.as_object().unwrap() {
        node[name] = value.clone();
    }
    json!({ "name": "one", "nodes": { "double": node } })
}

/// A workflow that waits for the signal `go`.
pub(crate) fn waiting() -> Value {
    json!({
        "name": "waiting",
        "nodes": {
            "wait": { "type": "wait", "signal": "go" },
            "after": { "type": "transform", "needs": ["wait"], "value": "${{ nodes.wait.output }}" },
        },
    })
}
