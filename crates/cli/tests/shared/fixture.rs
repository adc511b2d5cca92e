//! Starts an API and two workers with their own Redis and Postgres.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{Response, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use switchyard_test_servers::postgres::{Postgres, Sync};
use switchyard_test_servers::redis::Redis;

/// The time-out of every wait: much longer than any test needs, so that only a hang fails.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often to poll another process for an expected state.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A workflow with two gates, so that a run can advance and still be unfinished.
const GATES: &str = r#"{
    "name": "gates",
    "nodes": {
        "before": {"type": "transform", "value": 1},
        "first": {"type": "wait", "signal": "first", "needs": ["before"]},
        "between": {"type": "transform", "needs": ["first"], "value": 2},
        "second": {"type": "wait", "signal": "second", "needs": ["between"]},
        "after": {"type": "transform", "needs": ["second"], "value": 3}
    }
}"#;

pub(crate) struct Fixture {
    pub(crate) redis: Redis,
    pub(crate) postgres: Postgres,
    processes: Vec<Running>,
    settings: Vec<(String, String)>,
    http: reqwest::Client,
    address: String,
}

struct Running {
    name: &'static str,
    child: Child,
    said: mpsc::Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Fixture {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// Starts with these settings, by their environment names. The worker that starts first ships to the archive.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        Self::with_each(settings, settings)
    }

    /// Starts with settings that only the first worker has.
    pub(crate) fn with_first(settings: &[(&str, &str)]) -> Self {
        Self::with_each(settings, &[])
    }

    fn with_each(of_first: &[(&str, &str)], settings: &[(&str, &str)]) -> Self {
        let (redis, postgres) = (Redis::start(), Postgres::start(Sync::Off));
        let http = client(HeaderMap::new());
        let owned = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (processes, address) = (Vec::new(), String::new());
        let mut fixture = Self { redis, postgres, processes, settings: owned, http, address };
        fixture.start_processes(of_first, settings);
        fixture
    }

    fn start_processes(&mut self, of_first: &[(&str, &str)], settings: &[(&str, &str)]) {
        let (redis, postgres) = (&self.redis, &self.postgres);
        let first = start("worker-1", &["worker", "--slots", "4"], of_first, redis, postgres);
        let start = |name, args: &[&str]| start(name, args, settings, redis, postgres);
        first.wait_for("works");
        let api = start("api", &["api", "--listen", "127.0.0.1:0"]);
        self.address = address_of(&api);
        let second = start("worker-2", &["worker", "--slots", "4"]);
        second.wait_for("works");
        self.processes = vec![first, api, second];
    }

    /// Starts the same processes again, after all of them were stopped.
    pub(crate) fn start_again(&mut self) {
        let settings = self.settings.clone();
        let settings: Vec<_> = settings.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.start_processes(&settings, &settings);
    }

    /// Runs a command until it exits; returns its exit code and output.
    pub(crate) fn switchyard(&self, args: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut command = prepared(args, settings, &self.redis, &self.postgres);
        ended(command.stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn switchyard_without_postgres(&self, args: &[&str]) -> (Option<i32>, String) {
        let mut command = prepared(args, &[], &self.redis, &self.postgres);
        ended(command.env_remove("SWITCHYARD_POSTGRES").stdin(Stdio::null()).output().unwrap())
    }

    /// Waits until Redis knows the current position of the archive.
    pub(crate) async fn until_seen(&self) {
        let by = Instant::now() + PATIENCE;
        let position = "SELECT position FROM switchyard.archive";
        let client = redis::Client::open(self.redis.url()).unwrap();
        loop {
            let mut connection = client.get_connection().unwrap();
            let known: Option<String> =
                redis::cmd("HGET").arg("wf.archive").arg("position").query(&mut connection).unwrap();
            if known == self.postgres.psql("postgres", &[position]).ok() {
                return;
            }
            assert!(Instant::now() < by, "Redis does not see how far the archive has come");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) async fn until_not_ready(&self, code: &str) {
        let by = Instant::now() + PATIENCE;
        loop {
            let response = self.get("/readyz").await;
            if response.status() == StatusCode::SERVICE_UNAVAILABLE {
                let problem: Value = response.json().await.unwrap();
                if problem["code"] == code {
                    return;
                }
            }
            assert!(Instant::now() < by, "the API did not say {code}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Sends this key with every further request.
    pub(crate) fn send_key(&mut self, key: &str) {
        let bearer = format!("Bearer {key}").parse().unwrap();
        self.http = client(HeaderMap::from_iter([(AUTHORIZATION, bearer)]));
    }

    pub(crate) fn start_another(&mut self) {
        let settings: Vec<_> = self.settings.iter().map(|(name, value)| (&**name, &**value)).collect();
        let worker = start("worker-3", &["worker"], &settings, &self.redis, &self.postgres);
        worker.wait_for("works");
        self.processes.push(worker);
    }

    /// The address of the API that started first.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Starts a second API, and returns its address.
    pub(crate) fn start_another_api(&mut self) -> String {
        let settings: Vec<_> = self.settings.iter().map(|(name, value)| (&**name, &**value)).collect();
        let args = ["api", "--listen", "127.0.0.1:0"];
        let api = start("api-2", &args, &settings, &self.redis, &self.postgres);
        let address = address_of(&api);
        self.processes.push(api);
        address
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.get_at(&self.address, path).await
    }

    pub(crate) async fn get_at(&self, address: &str, path: &str) -> Response {
        self.http.get(format!("{address}{path}")).send().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        self.post_at(&self.address, path, body).await
    }

    pub(crate) async fn post_at(&self, address: &str, path: &str, body: &Value) -> Response {
        self.http.post(format!("{address}{path}")).json(body).send().await.unwrap()
    }

    /// Submits a run of any definition, and returns its id.
    pub(crate) async fn submitted_with(&self, workflow: &Value, input: &Value) -> String {
        let response = self.post("/v1/runs", &json!({ "workflow": workflow, "input": input })).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        response.json::<Value>().await.unwrap()["run_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn submit(&self) -> Response {
        self.post("/v1/runs", &json!({ "workflow": serde_json::from_str::<Value>(GATES).unwrap() })).await
    }

    pub(crate) async fn submitted(&self) -> String {
        let response = self.submit().await;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        response.json::<Value>().await.unwrap()["run_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn signal(&self, run: &str, name: &str) {
        let response = self.post(&format!("/v1/runs/{run}/signals/{name}"), &json!({})).await;
        assert!(response.status().is_success(), "{}", response.text().await.unwrap());
    }

    /// Waits until the view of a run satisfies `there`, and returns the view.
    pub(crate) async fn until(&self, run: &str, there: impl Fn(&Value) -> bool) -> Value {
        let by = Instant::now() + PATIENCE;
        loop {
            let response = self.get(&format!("/v1/runs/{run}")).await;
            let status = response.status();
            let view: Value = response.json().await.unwrap();
            if status.is_success() && there(&view) {
                return view;
            }
            assert!(Instant::now() < by, "{run} did not come there: {view:#}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) async fn until_at(&self, run: &str, node: &str, status: &str) {
        self.until(run, |view| view["nodes"][node]["status"] == status).await;
    }

    pub(crate) async fn until_gone(&self, run: &str) {
        let by = Instant::now() + PATIENCE;
        while self.get(&format!("/v1/runs/{run}")).await.status() != StatusCode::NOT_FOUND {
            assert!(Instant::now() < by, "{run} is still there");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) async fn until_ready(&self) {
        let by = Instant::now() + PATIENCE;
        while !self.get("/readyz").await.status().is_success() {
            assert!(Instant::now() < by, "the API did not become ready");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Every event of a run, from the archive.
    pub(crate) async fn events(&self, run: &str) -> Vec<Value> {
        let path = format!("{}/v1/runs/{run}/events", self.address);
        let request = self.http.get(path).header("Accept", "application/json");
        let body: Value = request.send().await.unwrap().json().await.unwrap();
        body["events"].as_array().unwrap_or_else(|| panic!("{body:#}")).clone()
    }

    /// Asserts that the history of an ended run has no gaps and each step once.
    pub(crate) async fn assert_whole(&self, run: &str) {
        let events = self.events(run).await;
        for (event, seq) in events.iter().zip(1..) {
            assert_eq!(event["seq"], seq, "{events:#?}");
        }
        let succeeded = events.iter().filter(|event| event["type"] == "node_succeeded").count();
        assert_eq!(succeeded, 5, "{events:#?}");
        assert_eq!(events.last().unwrap()["type"], "run_ended");
    }

    /// Asserts that none of the processes has ended.
    pub(crate) fn assert_all_run(&mut self) {
        for process in &mut self.processes {
            let ended = process.child.try_wait().unwrap();
            let said: Vec<String> = process.said.try_iter().collect();
            assert!(ended.is_none(), "{} ended with {ended:?}:\n{}", process.name, said.join("\n"));
        }
    }

    /// Sends SIGTERM to the oldest remaining process, and waits until it has ended in order.
    pub(crate) fn stop_first(&mut self) {
        self.processes.remove(0).stop();
    }

    /// Like [`Self::stop_first`], for the newest process.
    pub(crate) fn stop_last(&mut self) {
        self.processes.pop().unwrap().stop();
    }

    pub(crate) fn stop_all(&mut self) {
        while !self.processes.is_empty() {
            self.stop_first();
        }
    }

    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        self.metric_at(&self.address, name).await
    }

    pub(crate) async fn metric_at(&self, address: &str, name: &str) -> Option<f64> {
        let page = self.get_at(address, "/metrics").await.text().await.unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.to_owned();
        Some(line.trim().parse().unwrap())
    }
}

fn client(headers: HeaderMap) -> reqwest::Client {
    let client = switchyard_runtime::kinds::http_client();
    client.default_headers(headers).timeout(Duration::from_secs(30)).build().unwrap()
}

fn prepared(args: &[&str], settings: &[(&str, &str)], redis: &Redis, postgres: &Postgres) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
    command.args(args).current_dir(redis.folder());
    for (variable, _) in std::env::vars_os() {
        if variable.to_str().is_some_and(|name| name.starts_with("SWITCHYARD_") || name.starts_with("OTEL_"))
        {
            command.env_remove(variable);
        }
    }
    command.env("REDIS_URL", redis.url()).env("SWITCHYARD_POSTGRES", postgres.url());
    command.env("SWITCHYARD_WORKER_LEASE", "2s").env("SWITCHYARD_LOG", "warn");
    command.envs(settings.iter().copied());
    command
}

fn ended(output: Output) -> (Option<i32>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

fn start(
    name: &'static str,
    args: &[&str],
    settings: &[(&str, &str)],
    redis: &Redis,
    postgres: &Postgres,
) -> Running {
    let mut command = prepared(args, settings, redis, postgres);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (say, said) = mpsc::channel();
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
    Running { name, child, said }
}

fn address_of(api: &Running) -> String {
    let line = api.wait_for("http://");
    format!("http://{}", line.split_once("http://").unwrap().1.split('/').next().unwrap())
}

impl Running {
    fn stop(mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{} ended with {status}", self.name);
    }

    fn wait_for(&self, words: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => before.push(line),
                Err(_) => panic!("{} did not say `{words}`:\n{}", self.name, before.join("\n")),
            }
        }
    }
}

/// Asserts that the response is 503 with `Retry-After` and this problem code.
pub(crate) async fn assert_try_later(response: Response, code: &str) {
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert!(response.headers()["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 0);
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["code"], code, "{problem:#}");
}
