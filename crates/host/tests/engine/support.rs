//! An engine in a temporary folder, and shorthand for tests.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchyard_core::run::{EventKind, NodeState, Run, RunStatus};
use switchyard_core::{RunId, Timestamp};
use switchyard_host::embedded::{Embedded, Options};
use switchyard_lang::Program;
use switchyard_runtime::{Engine, Handlers, Principal, RunView, Submission};
use switchyard_store::ManualClock;
use tempfile::TempDir;

/// Longer than any test takes, so that a stuck test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct TestEngine {
    pub(crate) embedded: Embedded,
    pub(crate) folder: TempDir,
}

pub(crate) fn program(text: &str) -> Arc<Program> {
    Arc::new(
        Program::compile_text("test.yaml", text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}")),
    )
}

/// A caller for tests that do not check the caller.
pub(crate) fn tester() -> Principal {
    Principal::local("tester")
}

impl TestEngine {
    /// An engine with a worker.
    pub(crate) async fn working() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let fixture = Self::idle(change).await;
        fixture.embedded.work();
        fixture
    }

    /// An engine without a worker.
    pub(crate) async fn idle(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(folder.path());
        change(&mut options);
        let embedded = Embedded::open(options).await.unwrap();
        Self { embedded, folder }
    }

    /// An engine with a clock that stands still.
    pub(crate) async fn with_clock() -> (Self, ManualClock) {
        let clock = ManualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
        let fixture = Self::with(|options| options.clock = Arc::new(clock.clone())).await;
        (fixture, clock)
    }

    pub(crate) async fn with_handlers(handlers: Handlers) -> Self {
        Self::with(|options| options.handlers = handlers).await
    }

    /// The same folder in a new process, as far as the engine can tell.
    pub(crate) async fn reopen(self) -> Self {
        let Self { embedded, folder } = self;
        embedded.shut_down(Duration::ZERO).await;
        let embedded = Embedded::open(Options::new(folder.path())).await.unwrap();
        Self { embedded, folder }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.embedded.engine()
    }

    pub(crate) async fn start(&self, text: &str, input: Value) -> RunId {
        self.engine().submit(&tester(), Submission::new(program(text), input)).await.unwrap().run()
    }

    pub(crate) async fn end(&self, run: RunId) -> RunView {
        let ended = tokio::time::timeout(PATIENCE, self.engine().wait_for_end(run)).await;
        ended.unwrap_or_else(|_| panic!("{run} does not end")).unwrap();
        self.view(run).await
    }

    pub(crate) async fn run(&self, text: &str, input: Value) -> RunView {
        let run = self.start(text, input).await;
        self.end(run).await
    }

    pub(crate) async fn state(&self, run: RunId) -> Run {
        self.engine().state(run).await.unwrap()
    }

    pub(crate) async fn view(&self, run: RunId) -> RunView {
        let state = self.state(run).await;
        self.engine().history().view(&state).await.unwrap()
    }

    /// Waits for an event of this run that `wanted` accepts.
    pub(crate) async fn until(&self, run: RunId, wanted: impl Fn(&EventKind) -> bool) {
        let mut follow = self.engine().follow(run, 0);
        let found = async {
            loop {
                let events = follow.next().await.unwrap();
                if events.iter().any(|event| wanted(&event.kind)) {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("the event never comes"));
    }

    /// Waits until this node of the run waits.
    pub(crate) async fn until_waiting(&self, run: RunId, id: &str) {
        self.until(run, |kind| matches!(kind, EventKind::NodeWaiting { node, .. } if **node == *id)).await;
    }
}

/// Short forms for assertions.
pub(crate) trait RunViewExt {
    fn status(&self) -> RunStatus;
    fn output(&self) -> Value;
    fn error_code(&self) -> String;
    fn node(&self, id: &str) -> NodeState;
    fn node_output(&self, id: &str) -> Value;
    fn attempts(&self, id: &str) -> u32;
    fn is_cached(&self, id: &str) -> bool;
}

fn node<'a>(view: &'a RunView, id: &str) -> &'a switchyard_runtime::NodeView {
    let found = view.nodes.0.iter().find(|(node, _)| **node == *id);
    found.map(|(_, node)| node).unwrap_or_else(|| panic!("no node {id} in {view:#?}"))
}

impl RunViewExt for RunView {
    fn status(&self) -> RunStatus {
        self.status
    }

    fn output(&self) -> Value {
        serde_json::from_str(self.output.get()).unwrap()
    }

    fn error_code(&self) -> String {
        self.error.as_ref().map(|error| error.code.to_string()).unwrap_or_default()
    }

    fn node(&self, id: &str) -> NodeState {
        node(self, id).status
    }

    fn node_output(&self, id: &str) -> Value {
        serde_json::from_str(node(self, id).output.get()).unwrap()
    }

    fn is_cached(&self, id: &str) -> bool {
        node(self, id).cached
    }

    fn attempts(&self, id: &str) -> u32 {
        node(self, id).attempts
    }
}
