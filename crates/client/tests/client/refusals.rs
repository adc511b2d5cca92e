//! Errors of the client, and their messages.

use serde_json::json;
use switchyard_client::{Client, Error, Submission};
use switchyard_core::{RunId, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::TestServer;

#[tokio::test]
async fn a_refusal_has_a_code_a_sentence_and_a_hint() {
    let server = TestServer::start().await;
    let client = server.client();
    let nobody = RunId::new(Timestamp::from_millis(1), 1, 0);
    assert_eq!(client.run(nobody).await.unwrap_err().code(), Some("unknown_run"));
    assert_eq!(client.follow(nobody, 0).next().await.unwrap_err().code(), Some("unknown_run"));
    let unknown = client.submit(&Submission::named("nobody", json!(null))).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no workflow `nobody`");
    assert!(unknown.problem().unwrap().hint.as_ref().unwrap().contains("register it"));
    let wrong = json!({"name": "t", "nodes": {"a": {"type": "slep"}, "b": {"type": "nix"}}});
    let invalid = client.submit(&Submission::definition(wrong, json!(null))).await.unwrap_err();
    assert_eq!(invalid.problem().unwrap().problems.len(), 2);
    assert_eq!(invalid.problem().unwrap().problems[0].path, "nodes.a.type");
}

#[tokio::test]
async fn addresses_that_cannot_be_one_are_refused_at_once() {
    for wrong in ["", "localhost:7070", "ftp://127.0.0.1", "http://"] {
        let refused = Client::new(wrong).unwrap_err();
        assert!(matches!(refused, Error::Address(_)), "{wrong}: {refused}");
    }
    let key = Client::builder("http://127.0.0.1:1").api_key("a\nb").build().unwrap_err();
    assert!(matches!(key, Error::Key));
    let nobody = Client::builder("http://127.0.0.1:1").tries(2).build().unwrap();
    let error = nobody.server().await.unwrap_err();
    assert_eq!(
        (error.is_unreachable(), error.to_string()),
        (true, "no server answers at http://127.0.0.1:1".into())
    );
}

#[tokio::test]
async fn somebody_else_is_not_taken_for_a_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 1_024]).await;
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").await;
    });
    assert!(matches!(client.server().await.unwrap_err(), Error::Strange { .. }));
}
