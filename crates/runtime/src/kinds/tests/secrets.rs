use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::server::{Server, answer};
use super::{Bench, parts};
use crate::Secrets;

const TOKEN: &str = "tok-12345";

fn bench() -> Bench {
    let mut bench = Bench::new();
    let values = BTreeMap::from([("TOKEN".to_owned(), TOKEN.to_owned())]);
    bench.services.secrets = Secrets { dir: None, values };
    bench
}

fn call(url: &str) -> Value {
    let headers =
        json!({"Authorization": "Bearer ${{ secrets.TOKEN }}", "X-Mine": "${{ secrets['TOKEN'] }}"});
    json!({"type": "http", "request": {"url": url, "headers": headers}})
}

#[tokio::test]
async fn a_secret_goes_out_and_does_not_come_back() {
    let body = format!(r#"{{"you": "{TOKEN}", "list": ["a {TOKEN} b"]}}"#);
    let mut server = Server::answering(answer("200 OK", "application/json", body.as_bytes())).await;
    let output = bench().output(call(&server.url("/x")), json!(null)).await;
    let request = server.request().await;
    assert!(request.contains("\r\nauthorization: bearer tok-12345\r\n"), "{request}");
    assert_eq!(output["body"], json!({"you": "[secret TOKEN]", "list": ["a [secret TOKEN] b"]}));
    assert!(!output.to_string().contains(TOKEN));
}

#[tokio::test]
async fn an_error_does_not_have_the_secret_either() {
    let body = format!("{}{TOKEN} is not known", "x".repeat(195));
    let server = Server::answering(answer("401 Unauthorized", "text/plain", body.as_bytes())).await;
    let error = bench().error(call(&server.url("/x")), json!(null)).await;
    assert_eq!(&*error.code, "http_status");
    assert!(!error.message.contains("tok-"), "{error}");
    let node = json!({"type": "http", "request": {"url": "ftp://${{ secrets.TOKEN }}/x"}});
    let error = bench().error(node, json!(null)).await;
    assert_eq!(
        parts(&error),
        ("http_url", false, "`ftp://[secret TOKEN]/x` is not a URL with `http` or `https`")
    );
}

#[tokio::test]
async fn a_redirect_to_another_origin_leaves_headers_with_secrets_behind() {
    let mut there = Server::answering(answer("200 OK", "text/plain", b"ok")).await;
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", there.url("/y"));
    let mut here = Server::answering(head.into_bytes()).await;
    bench().output(call(&here.url("/x")), json!(null)).await;
    assert!(here.request().await.contains("x-mine: tok-12345"));
    assert!(!there.request().await.contains("tok-12345"));
}

#[tokio::test]
async fn a_program_finds_it_in_its_environment_and_what_it_says_is_redacted() {
    let node = |script: &str| json!({"type": "command", "command": ["sh", "-c", script], "env": {"T": "${{ secrets.TOKEN }}"}});
    let output =
        bench().output(node(r#"test "$T" = tok-12345 && echo "{\"t\": \"$T\"}""#), json!(null)).await;
    assert_eq!(output, json!({"t": "[secret TOKEN]"}));
    let error = bench().error(node(r#"echo "no $T" >&2; exit 3"#), json!(null)).await;
    assert_eq!(parts(&error), ("exit_status", true, "`sh` exited with 3: no [secret TOKEN]"));
}

#[tokio::test]
async fn a_worker_without_the_secret_says_so() {
    let error = Bench::new().error(call("http://127.0.0.1:1/"), json!(null)).await;
    assert_eq!(parts(&error), ("secret_missing", true, "this worker has no secret `TOKEN`"));
}
