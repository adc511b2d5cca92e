//! Tests of node kinds with real servers, real programs and a real archive, one node at a time.

use std::sync::Arc;

use serde_json::{Value, json};
use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::Limits;
use switchyard_core::run::{ClaimRef, Task, WaitFor};
use switchyard_core::{NodeError, Payload, RunId, Timestamp};
use switchyard_lang::{Program, Scope};
use switchyard_store::{Archive, ManualClock};
use switchyard_store_memory::MemoryStore;
use tempfile::TempDir;

use super::{Call, Done, Egress, HttpCalls, NodeSettings, Services, execute, http as http_kind};
use crate::handlers::Cancellation;
use crate::secrets::Revealed;
use crate::worker::{Held, LocalClaim};
use crate::{AttemptError, Catalog, Handlers, Payloads};

mod children;
mod command;
mod function;
mod http;
mod secrets;
mod server;
mod waiting;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The services of a node, on a folder of their own.
struct Bench {
    services: Services,
    held: Held,
    _folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let data = DataFolder::open(folder.path()).unwrap();
        let clock = Arc::new(ManualClock::starting_at(NOW));
        let archive: Arc<dyn Archive> = Arc::new(data.archive().unwrap());
        let hot = Arc::new(MemoryStore::new(archive.clone(), clock.clone(), Limits::default()));
        let catalog = Arc::new(Catalog::new(archive.clone(), archive.clone(), hot.clone()));
        let payloads = Payloads::new(Arc::new(data.cas()));
        let claim = ClaimRef { run: run(), node: "n".into(), claim: 1 };
        let claim = Arc::new(LocalClaim { hot, payloads: payloads.clone(), claim, lease: None });
        let held = Held::new(Cancellation::default(), claim, clock.clone());
        let nodes = NodeSettings { allow_commands: true, ..NodeSettings::default() };
        let handlers = Handlers::with_builtins();
        let services = Services::new(nodes, handlers, catalog, archive, payloads, clock).unwrap();
        let http = http_calls(Egress::default());
        Self { services: Services { http, ..services }, held, _folder: folder }
    }

    /// Executes a node for the first time, in a run with this input.
    async fn execute(&self, node: Value, input: Value) -> Result<Done, NodeError> {
        self.execute_task(node, input, |_| {}).await
    }

    async fn execute_task(
        &self,
        node: Value,
        input: Value,
        adjust: impl FnOnce(&mut Task),
    ) -> Result<Done, NodeError> {
        let program = Arc::new(Program::compile_value(&json!({"name": "t", "nodes": {"n": node}})).unwrap());
        let mut task = task(&program, &input);
        adjust(&mut task);
        let scope = Scope::new(input);
        let node = program.find("n").unwrap();
        let (program, scope, services, held) = (&program, &scope, &self.services, &self.held);
        let secrets = &Revealed::NONE;
        match execute(Call { task: &task, program, node, scope, services, held, secrets }).await {
            Ok(done) => Ok(done),
            Err(AttemptError::Node(error)) => Err(error),
            Err(AttemptError::StoreUnavailable(error)) => panic!("{error}"),
        }
    }

    async fn output(&self, node: Value, input: Value) -> Value {
        self.execute(node, input).await.unwrap().output()
    }

    async fn error(&self, node: Value, input: Value) -> NodeError {
        self.execute(node, input).await.unwrap_err()
    }

    async fn waits_for(&self, node: Value, input: Value) -> WaitFor {
        self.execute(node, input).await.unwrap().waiting()
    }
}

/// HTTP calls without this machine's proxy, which does not reach the test servers.
fn http_calls(egress: Egress) -> HttpCalls {
    HttpCalls::with(http_kind::client().no_proxy(), egress).unwrap()
}

fn run() -> RunId {
    RunId::new(NOW, 7, 3)
}

fn task(program: &Program, input: &Value) -> Task {
    Task {
        run: run(),
        node: "n".into(),
        ix: program.ir.find("n").unwrap(),
        claim: 1,
        attempt: 1,
        definition: program.hash,
        workflow: program.ir.name.clone(),
        run_attempt: 1,
        started_at: Timestamp::from_millis(0),
        queue: "http".into(),
        queued_at: Timestamp::from_millis(0),
        trace: None,
        depth: 0,
        skip: false,
        input: Payload::from_value(input),
        reads: vec![],
        rounds: 0,
        children: None,
        checkpoint: None,
        limit: None,
    }
}

impl Done {
    fn output(self) -> Value {
        match self {
            Self::Output(value) => value,
            Self::Waiting(on) => panic!("waits for {on:?}"),
        }
    }

    fn waiting(self) -> WaitFor {
        match self {
            Self::Waiting(on) => on,
            Self::Output(value) => panic!("gave {value}"),
        }
    }
}

/// The code of an error, whether it is retryable, and its message.
fn parts(error: &NodeError) -> (&str, bool, &str) {
    (&error.code, error.retryable, &error.message)
}
