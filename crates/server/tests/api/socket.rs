//! The WebSocket: a client follows many runs at once and gets each event exactly once, across restarts.

use std::collections::BTreeMap;

use futures::{SinkExt, StreamExt};
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use switchyard_runtime::{Principal, ids};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::events::{archived, chain};
use crate::harness::{PATIENCE, TestServer, hello, waiting};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(url: &str, headers: &[(&'static str, String)]) -> Result<Socket, tungstenite::Error> {
    let mut request = url.replace("http://", "ws://").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    Ok(tokio_tungstenite::connect_async(request).await?.0)
}

async fn open(server: &TestServer) -> Socket {
    connect(&server.url("/v1/events"), &[]).await.unwrap()
}

async fn say(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

/// The next message from the server.
async fn hear(socket: &mut Socket) -> Value {
    let heard = async {
        loop {
            match socket.next().await.expect("the socket is open").unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, heard).await.expect("something is said")
}

/// A client that remembers the last event of each run.
struct Reader {
    url: String,
    runs: BTreeMap<String, Seen>,
}

#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    ended: bool,
}

impl Reader {
    fn new(server: &TestServer, runs: &[String]) -> Self {
        let runs = runs.iter().map(|run| (run.clone(), Seen::default())).collect();
        Self { url: server.url("/v1/events"), runs }
    }

    fn is_done(&self) -> bool {
        self.runs.values().all(|seen| seen.ended)
    }

    /// Connects, resumes each run, and drops the connection after `enough` messages.
    async fn read(&mut self, enough: usize) {
        // There may be no server at the moment.
        let Ok(mut socket) = connect(&self.url, &[]).await else { return tokio::task::yield_now().await };
        for (run, seen) in self.runs.iter().filter(|(_, seen)| !seen.ended) {
            let ask = json!({ "subscribe": run, "after": seen.events.len() });
            if socket.send(Message::text(ask.to_string())).await.is_err() {
                return;
            }
        }
        for _ in 0..enough {
            if self.is_done() {
                return;
            }
            match socket.next().await {
                Some(Ok(Message::Text(text))) => self.take(&serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Ping(_))) => {}
                Some(Ok(_) | Err(_)) | None => return,
            }
        }
    }

    fn take(&mut self, said: &Value) {
        assert!(said.get("error").is_none(), "{said}");
        if let Some(event) = said.get("event") {
            let seen = self.runs.get_mut(event["run_id"].as_str().unwrap()).unwrap();
            assert!(!seen.ended, "after the end: {said}");
            assert_eq!(
                event["seq"].as_u64().unwrap() as usize,
                seen.events.len() + 1,
                "none missing, none twice"
            );
            seen.events.push(event.clone());
        }
        if let Some(run) = said.get("ended") {
            let seen = self.runs.get_mut(run.as_str().unwrap()).unwrap();
            assert_eq!(said["last"].as_u64().unwrap() as usize, seen.events.len());
            seen.ended = true;
        }
    }

    async fn compare(&self, server: &TestServer, seed: u64) {
        for (run, seen) in &self.runs {
            assert_eq!(seen.events, archived(server, run).await, "{run}, seed {seed}");
        }
    }
}

#[tokio::test]
async fn many_runs_are_followed_from_where_one_wants_to_their_ends() {
    let server = TestServer::start().await;
    let gate = server.submit(waiting(), Value::Null).await;
    let greeting = server.submit(hello(), json!({ "name": "Ada" })).await;
    server.end(&greeting).await;
    let mut socket = open(&server).await;
    say(&mut socket, json!({ "subscribe": gate })).await;
    assert_eq!(hear(&mut socket).await, json!({ "subscribed": gate, "after": 0 }));
    while hear(&mut socket).await["event"]["type"] != "node_waiting" {}
    say(&mut socket, json!({ "subscribe": greeting, "after": 2 })).await;
    assert_eq!(hear(&mut socket).await["subscribed"], json!(greeting));
    let whole = archived(&server, &greeting).await;
    for expected in &whole[2..] {
        assert_eq!(&hear(&mut socket).await["event"], expected);
    }
    assert_eq!(hear(&mut socket).await, json!({ "ended": greeting, "last": whole.len() }));
    server.post(&format!("/v1/runs/{gate}/signals/go"), json!({ "payload": 1 })).await.expect(200);
    loop {
        let said = hear(&mut socket).await;
        if said["ended"] == json!(gate) {
            break;
        }
        assert_eq!(said["event"]["run_id"], json!(gate), "{said}");
    }
    // The run has ended: a new subscription only reports its end.
    let last = archived(&server, &gate).await.len();
    say(&mut socket, json!({ "subscribe": gate, "after": last })).await;
    assert_eq!(hear(&mut socket).await["subscribed"], json!(gate));
    assert_eq!(hear(&mut socket).await, json!({ "ended": gate, "last": last }));
}

#[tokio::test]
async fn nothing_comes_of_a_run_after_it_was_unsubscribed() {
    let server = TestServer::start().await;
    let (left, kept) =
        (server.submit(waiting(), Value::Null).await, server.submit(waiting(), Value::Null).await);
    let mut socket = open(&server).await;
    // Repeated many times: the futures of removed subscriptions must be dropped as well.
    for _ in 0..50 {
        say(&mut socket, json!({ "subscribe": left })).await;
        say(&mut socket, json!({ "unsubscribe": left })).await;
    }
    say(&mut socket, json!({ "subscribe": kept })).await;
    let mut given_up = 0;
    loop {
        let said = hear(&mut socket).await;
        given_up += usize::from(said["unsubscribed"] == json!(left));
        if said["event"]["run_id"] == json!(kept) && said["event"]["type"] == "node_waiting" {
            break;
        }
    }
    assert_eq!(given_up, 50);
    for run in [&left, &kept] {
        server.post(&format!("/v1/runs/{run}/signals/go"), json!({})).await.expect(200);
        server.end(run).await;
    }
    loop {
        let said = hear(&mut socket).await;
        assert_ne!(said["event"]["run_id"], json!(left), "{said}");
        if said["ended"] == json!(kept) {
            break;
        }
    }
}

#[tokio::test]
async fn a_bad_message_is_answered_and_the_socket_goes_on() {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    let unknown = "run_00000000000000000000000000";
    let mut socket = open(&server).await;
    let text = |value: Value| Message::text(value.to_string());
    for (message, code) in [
        (Message::text("nonsense"), "invalid_message"),
        (Message::text("[]"), "invalid_message"),
        (Message::binary(vec![0xff]), "invalid_message"),
        (text(json!({})), "invalid_message"),
        (text(json!({ "subscribe": "nope" })), "invalid_id"),
        (text(json!({ "subscribe": unknown })), "unknown_run"),
        (text(json!({ "subscribe": run, "after": 999 })), "invalid_message"),
        (text(json!({ "unsubscribe": run })), "not_subscribed"),
        (text(json!({ "subscribe": run, "nope": 1 })), "invalid_message"),
    ] {
        let shown = message.to_string();
        socket.send(message).await.unwrap();
        let said = hear(&mut socket).await;
        assert_eq!(said["error"]["code"], code, "{shown}: {said}");
    }
    say(&mut socket, json!({ "subscribe": run })).await;
    say(&mut socket, json!({ "subscribe": run })).await;
    loop {
        let said = hear(&mut socket).await;
        if said["error"]["code"] == "already_subscribed" {
            assert_eq!(said["run_id"], json!(run));
            break;
        }
    }
    // A message that is too long closes the socket: later frames cannot be parsed.
    socket.send(Message::text("x".repeat(17 * 1024))).await.unwrap();
    let closed = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(frame)))) => return Some(frame.code),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    };
    let code = tokio::time::timeout(PATIENCE, closed).await.unwrap();
    assert!(code.is_none_or(|code| code == CloseCode::Policy), "{code:?}");
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn a_socket_follows_so_many_runs_and_no_more() {
    let server = TestServer::start().await;
    let socket = open(&server).await;
    server.post("/v1/workflows", waiting()).await.expect(200);
    let mut runs = Vec::new();
    for _ in 0..=1_000 {
        runs.push(server.submit(json!("waiting"), Value::Null).await);
    }
    let (mut sender, mut receiver) = socket.split();
    let asks = runs.clone();
    tokio::spawn(async move {
        for run in asks {
            sender.send(Message::text(json!({ "subscribe": run }).to_string())).await.unwrap();
        }
        // Dropping `sender` would close the socket.
        std::future::pending::<()>().await;
    });
    let (mut subscribed, mut refused) = (0, None);
    while subscribed + usize::from(refused.is_some()) < runs.len() {
        let next = tokio::time::timeout(PATIENCE, receiver.next()).await.unwrap().unwrap().unwrap();
        let Message::Text(said) = next else { continue };
        let said: Value = serde_json::from_str(&said).unwrap();
        subscribed += usize::from(said.get("subscribed").is_some());
        refused = said.get("error").map(|error| error["code"].clone()).or(refused);
    }
    assert_eq!((subscribed, refused), (1_000, Some(json!("too_many_subscriptions"))));
}

#[tokio::test]
async fn a_reader_that_drops_at_random_misses_and_repeats_nothing() {
    let server = TestServer::start().await;
    let seed: u64 = rand::random();
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut runs = Vec::new();
    for length in [1, 40, 80, 120, 160] {
        runs.push(server.submit(chain(length), Value::Null).await);
    }
    let mut reader = Reader::new(&server, &runs);
    let read = async {
        while !reader.is_done() {
            reader.read(random.random_range(1..200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("seed {seed}"));
    reader.compare(&server, seed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_resumes_through_restarts_of_the_server() {
    let mut server = TestServer::start().await;
    let seed: u64 = rand::random();
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(server.submit(chain(300), Value::Null).await);
    }
    let mut reader = Reader::new(&server, &runs);
    let mut pieces = rand::rngs::StdRng::seed_from_u64(seed + 1);
    let reading = tokio::spawn(async move {
        while !reader.is_done() {
            reader.read(pieces.random_range(1..600)).await;
        }
        reader
    });
    for _ in 0..3 {
        // Waits until the middle of the run, on machines of any speed.
        let some = random.random_range(1..400);
        let mut follow = server.fixture.engine().follow(runs[0].parse().unwrap(), 0);
        let mut seen = 0;
        while seen < some {
            seen += tokio::time::timeout(PATIENCE, follow.next()).await.unwrap().unwrap().len();
        }
        drop(follow);
        server = server.restart().await;
    }
    let reader =
        tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("seed {seed}")).unwrap();
    reader.compare(&server, seed).await;
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    let mut socket = open(&server).await;
    say(&mut socket, json!({ "subscribe": run })).await;
    hear(&mut socket).await;
    let restarting = tokio::spawn(server.restart());
    let closed = async {
        loop {
            if let Message::Close(frame) = socket.next().await.unwrap().unwrap() {
                return frame.unwrap().code;
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, closed).await.unwrap(), CloseCode::Restart);
    restarting.await.unwrap();
}

#[tokio::test]
async fn a_socket_wants_a_key_where_others_do_and_no_page_opens_one_where_none_is_wanted() {
    let server = TestServer::start().await;
    let url = server.url("/v1/events");
    let status = |answer: Result<Socket, tungstenite::Error>| match answer {
        Ok(_) => 101,
        Err(tungstenite::Error::Http(response)) => response.status().as_u16(),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(status(connect(&url, &[("origin", "http://evil.example".to_owned())]).await), 403);
    let key = server
        .fixture
        .engine()
        .keys()
        .create(&Principal::local("tester"), &ids::operation_id(), "ada", None)
        .await
        .unwrap()
        .text
        .unwrap();
    assert_eq!(status(connect(&url, &[]).await), 401);
    assert_eq!(status(connect(&format!("{url}?access_token={key}"), &[]).await), 401);
    assert_eq!(status(connect(&url, &[("authorization", format!("Bearer {key}"))]).await), 101);
    // A browser sends the key as a subprotocol.
    let protocols = ("sec-websocket-protocol", format!("switchyard.v1, bearer.{key}"));
    assert_eq!(status(connect(&url, &[protocols]).await), 101);
    let wrong = ("sec-websocket-protocol", "switchyard.v1, bearer.swk_1_2".to_owned());
    assert_eq!(status(connect(&url, &[wrong]).await), 401);
}
