//! Handlers and runs on a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchyard_host::embedded::{Embedded, Options};
use switchyard_sdk::{
    Context, Error, HandlerError, RunStatus, SubmitOptions, Switchyard, Worker, WorkerBuilder, Workflow,
};
use switchyard_server::{ServerState, serve};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct TestServer {
    address: SocketAddr,
    switchyard: Embedded,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    data: PathBuf,
    folder: TempDir,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::open(folder.path().to_owned(), folder, listener).await
    }

    async fn open(data: PathBuf, folder: TempDir, listener: TcpListener) -> Self {
        let switchyard =
            Embedded::open(Options { leave_functions: true, ..Options::new(&data) }).await.unwrap();
        switchyard.work();
        let state = ServerState::new(switchyard.engine().clone(), switchyard.services().clone())
            .of_store(switchyard.id());
        let stop = CancellationToken::new();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, state, stop.clone().cancelled_owned()));
        Self { address, switchyard, stop, serving, data, folder }
    }

    async fn restart(self) -> Self {
        let Self { address, switchyard, stop, serving, data, folder } = self;
        stop.cancel();
        serving.await.unwrap();
        switchyard.shut_down(Duration::ZERO).await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        Self::open(data, folder, socket.listen(128).unwrap()).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn worker(&self) -> WorkerBuilder {
        Worker::connect(&self.url()).lease(Duration::from_secs(1))
    }

    async fn switchyard(&self) -> switchyard_sdk::RemoteSwitchyard {
        Switchyard::connect(&self.url()).open().await.unwrap()
    }
}

fn one(extra: &str) -> String {
    format!(
        "name: t\nnodes:\n  work: {{ type: function, function: work, input: '${{{{ input }}}}'{extra} }}\n"
    )
}

#[tokio::test]
async fn the_same_handlers_give_the_same_at_a_server() {
    let server = TestServer::start().await;
    let worker = server.worker().handler("work", |n: u32, _| async move { Ok(2 * n) }).start().await.unwrap();
    let switchyard = server.switchyard().await;
    assert_eq!(switchyard.run::<u32>(one(""), 21).await.unwrap().output(), Ok(42));
    let wrong = switchyard.run::<u32>(one(""), "x").await.unwrap().output().unwrap_err();
    assert_eq!((wrong.status, wrong.code()), (RunStatus::Failed, "input"));
    assert_eq!(switchyard.register_workflow(one("").as_str()).await.unwrap().version, 1);
    let keyed = || SubmitOptions::new().idempotency_key("k");
    let run = switchyard.submit_with(Workflow::named("t").version(1), 4, keyed()).await.unwrap();
    assert_eq!(switchyard.submit_with(Workflow::named("t").version(1), 4, keyed()).await.unwrap(), run);
    assert_eq!(switchyard.wait::<u32>(run).await.unwrap().output(), Ok(8));
    assert_eq!(switchyard.wait::<u32>(run).await.unwrap().output(), Ok(8), "it ended long ago");
    let invalid = switchyard.submit("name: t\nnodes:\n  a: { type: slep }\n", ()).await.unwrap_err();
    assert!(invalid.to_string().starts_with("workflow:3:14: "), "{invalid}");
    let unknown = switchyard.submit(Workflow::named("nobody"), ()).await.unwrap_err();
    assert!(
        matches!(&unknown, Error::Server(error) if error.code() == Some("unknown_workflow")),
        "{unknown}"
    );
    worker.shut_down().await;
}

#[tokio::test]
async fn failures_panics_and_time_limits_are_attempts() {
    let server = TestServer::start().await;
    let worker = server
        .worker()
        .handler("work", |how: String, cx: Context| async move {
            match (how.as_str(), cx.attempt()) {
                ("fail", 1) => Err(HandlerError::retryable("busy", "")),
                ("panic", 1) => panic!("ouch"),
                ("hang", 1) => std::future::pending().await,
                ("never", _) => Err(HandlerError::permanent("never", "x".repeat(10_000))),
                (_, attempt) => Ok(attempt),
            }
        })
        .start()
        .await
        .unwrap();
    let switchyard = server.switchyard().await;
    let text = one(", timeout: 100ms, retry: { max_attempts: 2, initial: 1ms }");
    for how in ["fail", "panic", "hang"] {
        assert_eq!(switchyard.run::<u32>(text.as_str(), how).await.unwrap().output(), Ok(2), "{how}");
    }
    let failure = switchyard.run::<u32>(text.as_str(), "never").await.unwrap().output().unwrap_err();
    assert_eq!(failure.code(), "never", "a long message is cut, not lost");
    worker.shut_down().await;
}

#[tokio::test]
async fn two_workers_get_the_functions_that_each_of_them_has() {
    let server = TestServer::start().await;
    let says = |name: &'static str| move |(): (), _: Context| async move { Ok::<_, HandlerError>(name) };
    let old = server.worker().handler("enrich@1", says("old")).handler("mail", says("mail"));
    let new = server.worker().handler("enrich@2", says("new"));
    let (old, new) = (old.start().await.unwrap(), new.start().await.unwrap());
    let switchyard = server.switchyard().await;
    let text = "name: t\nnodes:\n  a: { type: function, function: enrich@1 }\n  \
                b: { type: function, function: enrich@2 }\n  c: { type: function, function: mail }\n\
                output: [\"${{ nodes.a.output }}\", \"${{ nodes.b.output }}\", \"${{ nodes.c.output }}\"]\n";
    for _ in 0..5 {
        let said = switchyard.run::<[String; 3]>(text, ()).await.unwrap().output().unwrap();
        assert_eq!(said, ["old", "new", "mail"]);
    }
    old.shut_down().await;
    new.shut_down().await;
}

#[tokio::test]
async fn the_next_worker_goes_on_at_the_checkpoint() {
    let server = TestServer::start().await;
    let reached = Arc::new(Notify::new());
    let tell = reached.clone();
    let handler = move |_: (), cx: Context| {
        let tell = tell.clone();
        async move {
            if let Some(page) = cx.checkpoint::<u32>()? {
                return Ok((cx.attempt(), page));
            }
            cx.save_checkpoint(7).await?;
            cx.stream("page 7").await?;
            tell.notify_one();
            std::future::pending().await
        }
    };
    let first = server.worker().grace(Duration::ZERO).handler("work", handler.clone()).start().await.unwrap();
    let switchyard = server.switchyard().await;
    let run = switchyard.submit(one(""), ()).await.unwrap();
    reached.notified().await;
    // The worker releases the task, because the grace period is zero.
    first.shut_down().await;
    let second = server.worker().handler("work", handler).start().await.unwrap();
    assert_eq!(switchyard.wait::<Value>(run).await.unwrap().output(), Ok(json!([1, 7])), "the same attempt");
    second.shut_down().await;
}

#[tokio::test]
async fn a_worker_that_stops_finishes_first() {
    let server = TestServer::start().await;
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (begun.clone(), go.clone());
    let worker = server.worker().grace(Duration::from_secs(60)).handler("work", move |_: (), _| {
        let (tell, wait) = (tell.clone(), wait.clone());
        async move {
            tell.notify_one();
            wait.notified().await;
            Ok("done")
        }
    });
    let worker = worker.start().await.unwrap();
    let switchyard = server.switchyard().await;
    let run = switchyard.submit(one(""), ()).await.unwrap();
    begun.notified().await;
    let stopping = tokio::spawn(worker.shut_down());
    go.notify_one();
    stopping.await.unwrap();
    assert_eq!(
        switchyard.view(run).await.unwrap().status,
        RunStatus::Succeeded,
        "it was settled before the end"
    );
}

#[tokio::test]
async fn a_handler_hears_that_its_run_was_cancelled() {
    let server = TestServer::start().await;
    let (begun, cleaned) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, bell) = (begun.clone(), cleaned.clone());
    let worker = server.worker().handler("work", move |_: (), cx: Context| {
        let (tell, bell) = (tell.clone(), bell.clone());
        async move {
            let stop = cx.cancellation();
            tell.notify_one();
            stop.cancelled().await;
            tokio::task::yield_now().await;
            bell.notify_one();
            Err::<(), _>(HandlerError::retryable("stopped", ""))
        }
    });
    let worker = worker.start().await.unwrap();
    let switchyard = server.switchyard().await;
    let run = switchyard.submit(one(""), ()).await.unwrap();
    begun.notified().await;
    switchyard.cancel(run, "me", "enough").await.unwrap();
    cleaned.notified().await;
    let failure = switchyard.wait::<()>(run).await.unwrap().output().unwrap_err();
    assert_eq!(failure.status, RunStatus::Cancelled);
    worker.shut_down().await;
}

#[tokio::test]
async fn a_restart_of_the_server_is_survived() {
    let server = TestServer::start().await;
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let worker = server.worker().handler("work", move |n: u32, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(n + 1) }
    });
    let worker = worker.start().await.unwrap();
    let switchyard = server.switchyard().await;
    assert_eq!(switchyard.run::<u32>(one(""), 1).await.unwrap().output(), Ok(2));
    let text = "name: gate\nnodes:\n  gate: { type: wait, signal: go }\n  work: { type: function, function: work, needs: [gate], input: 5 }\n";
    let run = switchyard.submit(text, ()).await.unwrap();
    let waiting = tokio::spawn({
        let switchyard = switchyard.clone();
        async move { switchyard.wait::<u32>(run).await.unwrap().output() }
    });
    let _server = server.restart().await;
    switchyard.signal(run, "go", ()).await.unwrap();
    assert_eq!(waiting.await.unwrap(), Ok(6));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    worker.shut_down().await;
}

#[tokio::test]
async fn many_tasks_share_the_slots() {
    let server = TestServer::start().await;
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (count, peak) = (now.clone(), most.clone());
    let worker = server.worker().slots(3).handler("work", move |n: u32, _| {
        let (count, peak) = (count.clone(), peak.clone());
        async move {
            peak.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            count.fetch_sub(1, Ordering::SeqCst);
            Ok(n)
        }
    });
    let worker = worker.start().await.unwrap();
    let switchyard = server.switchyard().await;
    let text = "name: many\nnodes:\n  each: { type: map, items: '${{ input }}', input: '${{ item }}', workflow: t }\n";
    switchyard.register_workflow(one("").as_str()).await.unwrap();
    let items: Vec<u32> = (0..40).collect();
    assert_eq!(switchyard.run::<Vec<u32>>(text, &items).await.unwrap().output().unwrap(), items);
    assert!(most.load(Ordering::SeqCst) <= 3);
    worker.shut_down().await;
}

#[tokio::test]
async fn approvals_are_decided_at_a_server() {
    let server = TestServer::start().await;
    let switchyard = server.switchyard().await;
    let run = switchyard.submit("name: t\nnodes:\n  ask: { type: hitl, prompt: 'go?' }\n", ()).await.unwrap();
    let mut events = switchyard.follow(run, 0);
    while events.next().await.unwrap().is_some_and(|event| &*event.kind != "node_waiting") {}
    let pending = switchyard.approvals_of(run).await.unwrap();
    assert_eq!(pending[0].prompt.as_deref(), Some("go?"));
    switchyard.approve(&pending[0].id, "me", "yes").await.unwrap();
    assert!(switchyard.wait::<Value>(run).await.unwrap().succeeded());
    assert!(switchyard.approvals().await.unwrap().is_empty());
}

#[tokio::test]
async fn nobody_there_is_said_at_once() {
    let refused = Worker::connect("http://127.0.0.1:1").start().await.unwrap_err();
    assert_eq!(refused.to_string(), "no server answers at http://127.0.0.1:1");
    let refused = Switchyard::connect("nowhere").open().await.unwrap_err();
    assert!(matches!(refused, Error::Server(switchyard_sdk::ServerError::Address(_))), "{refused}");
}
