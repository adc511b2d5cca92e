//! The users of the test: they submit, decide, signal, patch, pause, cancel and retry, through whichever API answers.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use switchyard_core::RunId;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::decisions::{Answer, Decision, Kind, operation_of};
use crate::worker::Worker;
use crate::{graphs, random_part};

const USERS: usize = 6;
/// Time limit of a request: longer than a server tries to find out an outcome before it reports it as unknown.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(18);
const PAUSE_MAX: Duration = Duration::from_millis(300);
/// How often a request with an unknown outcome is sent, and the longest pause before the next try.
const TRIES_MAX: usize = 6;
const BETWEEN_TRIES_MAX: Duration = Duration::from_millis(800);

/// A submission and its answers.
#[derive(Debug)]
pub(crate) struct Submission {
    /// The mark in the input of the run.
    pub(crate) mark: String,
    /// The run of the answer, if there was one.
    pub(crate) run: Option<RunId>,
    pub(crate) answers: Vec<Answer>,
}

/// All requests and their answers.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) submissions: Vec<Submission>,
    pub(crate) decisions: Vec<Decision>,
    /// Patches that were answered with success: run and node.
    pub(crate) patches: Vec<(RunId, String)>,
    /// Number of repetitions of requests that were already answered.
    pub(crate) repeated: usize,
    /// Answers that no server should ever give.
    pub(crate) wrong: Vec<String>,
    /// Number of requests that were not answered within [`REQUEST_TIME_MAX`].
    pub(crate) unanswered: usize,
}

impl Asked {
    fn and(mut self, other: Self) -> Self {
        self.submissions.extend(other.submissions);
        self.decisions.extend(other.decisions);
        self.patches.extend(other.patches);
        self.wrong.extend(other.wrong);
        self.repeated += other.repeated;
        self.unanswered += other.unanswered;
        self
    }
}

pub(crate) struct Load {
    enough: CancellationToken,
    stop: CancellationToken,
    users: JoinSet<Asked>,
    stop_worker: CancellationToken,
    worker: JoinHandle<()>,
}

struct User {
    number: usize,
    serial: usize,
    random: StdRng,
    http: Client,
    addresses: Vec<String>,
    effects: String,
    runs: Vec<RunId>,
    asked: Asked,
}

/// The outcome of a request, and the body of the answer.
struct Heard {
    answer: Answer,
    body: Value,
}

impl Load {
    pub(crate) fn start(mut random: StdRng, addresses: &[String], effects: &str) -> Self {
        let (enough, stop) = (CancellationToken::new(), CancellationToken::new());
        let http = Client::builder().timeout(REQUEST_TIME_MAX).build().unwrap_or_default();
        let worker =
            Worker { random: random_part(&mut random), http: http.clone(), addresses: addresses.to_vec() };
        let stop_worker = CancellationToken::new();
        let worker = tokio::spawn(worker.work_until(stop_worker.clone()));
        let mut users = JoinSet::new();
        for number in 0..USERS {
            let user = User {
                number,
                serial: 0,
                random: random_part(&mut random),
                http: http.clone(),
                addresses: addresses.to_vec(),
                effects: effects.to_owned(),
                runs: Vec::new(),
                asked: Asked::default(),
            };
            users.spawn(user.act_until(enough.clone(), stop.clone()));
        }
        Self { users, stop_worker, worker, enough, stop }
    }

    /// Stops submissions: from now on users only answer approvals, and resume the runs that they paused.
    pub(crate) fn submit_no_more(&self) {
        self.enough.cancel();
    }

    /// Waits for the users' last requests. The worker continues.
    pub(crate) async fn dismiss_users(&mut self) -> Asked {
        self.stop.cancel();
        let users = std::mem::take(&mut self.users);
        users.join_all().await.into_iter().fold(Asked::default(), Asked::and)
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.stop_worker.cancel();
        Ok(self.worker.await?)
    }
}

impl User {
    async fn act_until(mut self, enough: CancellationToken, stop: CancellationToken) -> Asked {
        while !stop.is_cancelled() {
            if enough.is_cancelled() {
                self.decide().await;
                self.resume_any().await;
            } else {
                self.act().await;
            }
            tokio::time::sleep(self.random.random_range(Duration::ZERO..PAUSE_MAX)).await;
        }
        self.asked
    }

    async fn act(&mut self) -> Option<()> {
        match self.random.random_range(0..20) {
            0 | 1 => self.patch().await,
            2 => self.cancel().await,
            3 | 4 => self.of_recent(Kind::Pause, "pause").await,
            5 | 6 => self.resume_any().await,
            7 => self.retry_any().await,
            8..=10 => self.signal().await,
            11..=13 => self.decide().await,
            _ => self.submit().await,
        }
    }

    /// A mark that is unique among all requests of all users.
    fn mark(&mut self) -> String {
        self.serial += 1;
        format!("u{}-{}-", self.number, self.serial)
    }

    /// An operation id for half of the requests, as a careful client sends one.
    fn operation(&mut self, mark: &str) -> Option<String> {
        self.random.random_bool(0.5).then(|| operation_of(mark))
    }

    async fn submit(&mut self) -> Option<()> {
        let mark = self.mark();
        let workflow = graphs::workflow(&mut self.random, &self.effects);
        let mut body = json!({ "workflow": workflow, "input": { "mark": mark } });
        if self.random.random_bool(0.2) {
            body["concurrency"] = json!({ "key": "tenant", "limit": 4 });
        }
        let operation = self.operation(&mark);
        let (answers, said) = self.ask("/v1/runs", &body, operation).await;
        let run = said["run_id"].as_str().and_then(|run| run.parse().ok());
        self.runs.extend(run);
        self.asked.submissions.push(Submission { mark, run, answers });
        Some(())
    }

    /// A recent run, which is likely to be in progress.
    fn recent(&mut self) -> Option<RunId> {
        let back = self.random.random_range(1..=4).min(self.runs.len());
        (back > 0).then(|| self.runs[self.runs.len() - back])
    }

    /// Cancels a run; half of the cancels do not wait for the workers of the run.
    async fn cancel(&mut self) -> Option<()> {
        let (run, mark) = (self.recent()?, self.mark());
        let body = json!({ "by": mark, "now": self.random.random_bool(0.5) });
        self.decision(run, Kind::Cancel, mark, &format!("/v1/runs/{run}/cancel"), &body).await;
        Some(())
    }

    async fn of_recent(&mut self, kind: Kind, verb: &str) -> Option<()> {
        let run = self.recent()?;
        self.by(run, kind, &format!("/v1/runs/{run}/{verb}")).await;
        Some(())
    }

    async fn resume_any(&mut self) -> Option<()> {
        let run = self.any("paused").await?;
        self.by(run, Kind::Resume, &format!("/v1/runs/{run}/resume")).await;
        Some(())
    }

    async fn retry_any(&mut self) -> Option<()> {
        let run = self.any("failed").await?;
        self.by(run, Kind::Retry, &format!("/v1/runs/{run}/retry")).await;
        Some(())
    }

    async fn signal(&mut self) -> Option<()> {
        let (run, mark) = (self.recent()?, self.mark());
        let body = json!({ "payload": { "mark": mark } });
        self.decision(run, Kind::Signal, mark, &format!("/v1/runs/{run}/signals/go"), &body).await;
        Some(())
    }

    async fn patch(&mut self) -> Option<()> {
        let (run, mark) = (self.recent()?, self.mark());
        let (node, spec) = graphs::addition(&mut self.random, &self.effects);
        let body = json!({ "ops": [{ "op": "add_node", "id": node, "node": spec }], "by": mark });
        let done = self.decision(run, Kind::Patch, mark, &format!("/v1/runs/{run}/patches"), &body).await;
        if done == Answer::Done {
            self.asked.patches.push((run, node));
        }
        Some(())
    }

    async fn decide(&mut self) -> Option<()> {
        let list = self.get("/v1/approvals").await?;
        let open = list["approvals"].as_array()?;
        let one = open.get(self.random.random_range(0..open.len().max(1)))?;
        let (approval, run) = (one["approval"].as_str()?.to_owned(), one["run"].as_str()?.parse().ok()?);
        let (kind, how) =
            if self.random.random_bool(0.8) { (Kind::Approve, "approve") } else { (Kind::Reject, "reject") };
        self.by(run, kind, &format!("/v1/approvals/{approval}/{how}")).await;
        Some(())
    }

    /// A random run with that status.
    async fn any(&mut self, status: &str) -> Option<RunId> {
        let list = self.get(&format!("/v1/runs?status={status}&limit=20")).await?;
        let runs = list["runs"].as_array()?;
        runs.get(self.random.random_range(0..runs.len().max(1)))?["run_id"].as_str()?.parse().ok()
    }

    async fn by(&mut self, run: RunId, kind: Kind, path: &str) {
        let mark = self.mark();
        let body = json!({ "by": mark });
        self.decision(run, kind, mark, path, &body).await;
    }

    async fn decision(&mut self, run: RunId, kind: Kind, mark: String, path: &str, body: &Value) -> Answer {
        // A cancel can only be found in the history by its operation.
        let operation = match kind {
            Kind::Cancel => Some(operation_of(&mark)),
            _ => self.operation(&mark),
        };
        let (answers, _) = self.ask(path, body, operation).await;
        let decision = Decision { run, kind, mark, answers };
        let known = decision.known();
        self.asked.decisions.push(decision);
        known
    }

    /// Sends a request, and again under the same operation id while the outcome is unknown; sometimes once more
    /// although it is known, which must change nothing. Returns the answers, and the body of the last one.
    async fn ask(&mut self, path: &str, body: &Value, operation: Option<String>) -> (Vec<Answer>, Value) {
        let (mut operation, mut answers) = (operation, Vec::new());
        loop {
            let Heard { answer, body: said } = self.post(path, body, operation.as_deref()).await;
            answers.push(answer);
            if let Some(told) = said["operation"].as_str() {
                operation.get_or_insert_with(|| told.to_owned());
            }
            let unknown = answer == Answer::Unknown && answers.len() < TRIES_MAX;
            if operation.is_none() || !unknown {
                if answer == Answer::Done && operation.is_some() && self.random.random_bool(0.2) {
                    self.repeat(path, body, operation.as_deref(), &said).await;
                }
                return (answers, said);
            }
            tokio::time::sleep(self.random.random_range(Duration::ZERO..BETWEEN_TRIES_MAX)).await;
        }
    }

    /// Repeats a request that was carried out. The answer must not name another run, nor be a permanent refusal.
    async fn repeat(&mut self, path: &str, body: &Value, operation: Option<&str>, first: &Value) {
        let again = self.post(path, body, operation).await;
        self.asked.repeated += 1;
        // An answer with the code `done_and_unread` names no run.
        let runs = [&again.body["run_id"], &first["run_id"]];
        let other_run =
            again.answer == Answer::Done && runs.iter().all(|run| run.is_string()) && runs[0] != runs[1];
        let refused_for_good = again.answer == Answer::Refused && again.body["status"] != json!(503);
        if other_run || refused_for_good {
            let said = again.body.to_string();
            self.asked.wrong.push(format!("{path} was done, and repeated under {operation:?} said {said}"));
        }
    }

    fn address(&mut self) -> String {
        self.addresses[self.random.random_range(0..self.addresses.len())].clone()
    }

    async fn get(&mut self, path: &str) -> Option<Value> {
        let url = format!("{}{path}", self.address());
        self.http.get(url).send().await.ok()?.json().await.ok()
    }

    async fn post(&mut self, path: &str, body: &Value, operation: Option<&str>) -> Heard {
        let url = format!("{}{path}", self.address());
        let mut request = self.http.post(url).json(body);
        if let Some(operation) = operation {
            request = request.header("Idempotency-Key", operation);
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                self.asked.unanswered += usize::from(error.is_timeout());
                return Heard { answer: Answer::Unknown, body: Value::Null };
            }
        };
        let status = response.status();
        let body: Value = response.json().await.unwrap_or_default();
        Heard { answer: answer(status, body["code"].as_str().unwrap_or_default()), body }
    }
}

/// Classifies an answer. Only one that says that nothing was changed is a refusal.
fn answer(status: StatusCode, code: &str) -> Answer {
    match code {
        _ if status.is_success() => Answer::Done,
        "done_and_unread" => Answer::Done,
        "outcome_unknown" => Answer::Unknown,
        _ if status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE => Answer::Refused,
        _ => Answer::Unknown,
    }
}
