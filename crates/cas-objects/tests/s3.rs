//! Runs the conformance suite of the CAS against a server with an S3 API.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use switchyard_cas_objects::ObjectCas;
use switchyard_conformance::archive::CasBackend;
use switchyard_store::{Cas, StoreError};

/// `cargo xtask test` installs the server and sets this.
const PROGRAM: &str = "SWITCHYARD_MOTO";

struct Server {
    port: u16,
    // The server ends with the tests, because its stdin is a pipe of theirs.
    _process: Child,
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let program = std::env::var_os(PROGRAM).expect("SWITCHYARD_MOTO says where moto_server is");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        // The server ends with the process that started it, even if that process is killed.
        let script = "\"$@\" & server=$!; exec 2>/dev/null; read -r _; kill $server";
        let mut command = Command::new("sh");
        command.args(["-c", script, "moto.sh"]).arg(program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("sh is there");
        let mut log = BufReader::new(process.stderr.take().expect("stderr is a pipe"));
        let mut line = String::new();
        while !line.contains("Running on") {
            line.clear();
            assert!(log.read_line(&mut line).expect("a log") > 0, "moto_server did not start");
        }
        std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
        put(port, "payloads");
        Server { port, _process: process }
    })
}

/// Creates a bucket.
fn put(port: u16, bucket: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let head = format!(
        "PUT /{bucket} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn at(url: &str) -> ObjectCas {
    let endpoint = format!("http://127.0.0.1:{}", server().port);
    let settings = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "somebody"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    ObjectCas::open(url, settings).expect("a place")
}

struct S3;

#[async_trait]
impl CasBackend for S3 {
    type Location = String;

    async fn location(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        format!("s3://payloads/test/{}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    async fn open(&self, location: &String) -> Arc<dyn Cas> {
        Arc::new(at(location))
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, which `cargo xtask test` installs"]
async fn s3_does_what_every_cas_has_to_do() {
    switchyard_conformance::archive::cas::all(&S3).await;
}

#[tokio::test]
#[ignore = "needs moto, which `cargo xtask test` installs"]
async fn a_bucket_that_is_not_there_is_a_clear_error() {
    let error = at("s3://nowhere").put("content".into()).await.expect_err("there is no such bucket");
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("s3://nowhere")), "{error:?}");
}
