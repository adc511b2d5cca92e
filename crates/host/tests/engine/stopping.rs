//! Stopping in three phases, each of them logged.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::Limits;
use switchyard_core::run::RunStatus;
use switchyard_runtime::kinds::{NodeSettings, Services};
use switchyard_runtime::{Engine, Handlers, Submission, WorkerPool, WorkerSettings};
use switchyard_store::SystemClock;
use switchyard_store_memory::MemoryStore;
use tokio::sync::{Notify, mpsc};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{program, tester};

/// Collects the lines that this thread logs.
#[derive(Clone)]
struct Log(mpsc::UnboundedSender<String>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// A handler that notifies `begun`, and ends when `end` is notified.
fn obedient(begun: &Arc<Notify>, end: &Arc<Notify>) -> Handlers {
    let (begun, end) = (begun.clone(), end.clone());
    let mut handlers = Handlers::with_builtins();
    handlers.register_fn("obey", move |_, _| {
        let (begun, end) = (begun.clone(), end.clone());
        async move {
            begun.notify_one();
            end.notified().await;
            Ok(Value::Null)
        }
    });
    handlers
}

#[tokio::test]
async fn a_worker_that_stops_tells_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::open(folder.path()).unwrap();
    let (archive, cas) = (Arc::new(data.archive().unwrap()), Arc::new(data.cas()));
    let clock = Arc::new(SystemClock);
    let hot = Arc::new(MemoryStore::new(archive.clone(), clock.clone(), Limits::default()));
    let engine = Engine::new(hot.clone(), archive.clone(), cas, clock.clone());
    let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (catalog, payloads) = (engine.catalog().clone(), engine.payloads().clone());
    let services =
        Services::new(NodeSettings::default(), obedient(&begun, &end), catalog, archive, payloads, clock)
            .unwrap();
    // Any interval works, because the test waits for each line.
    let settings = WorkerSettings { tell_every: Duration::from_millis(1), ..WorkerSettings::embedded(4) };
    let pool = WorkerPool::start(hot, Arc::new(services), &settings);
    let obey = program("name: w\nnodes: {a: {type: function, function: obey}}");
    let run = engine.submit(&tester(), Submission::new(obey, json!({}))).await.unwrap().run();
    begun.notified().await;
    assert_eq!(pool.busy().slots(), 1);

    let (sender, mut lines) = mpsc::unbounded_channel();
    let subscriber = tracing_subscriber::fmt().with_writer(Log(sender)).with_ansi(false).finish();
    let _listening = tracing::subscriber::set_default(subscriber);
    let stopping = pool.shut_down(Duration::from_secs(3600));
    let watching = async {
        for expected in [
            "no further task is claimed phase=1 running=1",
            "tasks finish phase=2 running=1 finished=0",
            "tasks finish phase=2 running=1 finished=0",
        ] {
            let line = lines.recv().await.unwrap();
            assert!(line.contains(expected), "{expected} is not in {line}");
        }
        end.notify_one();
    };
    tokio::join!(stopping, watching);
    let mut last = String::new();
    while let Ok(line) = lines.try_recv() {
        last = line;
    }
    assert!(last.contains("every task is finished or handed back phase=3"), "{last}");
    assert_eq!(engine.history().run(run).await.unwrap().status, RunStatus::Succeeded);
}
