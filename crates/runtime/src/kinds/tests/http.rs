use std::sync::Arc;

use reqwest::dns::Resolve;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::server::{self, Server, answer};
use super::{Bench, Egress, http_kind, parts, run};

fn get(url: &str) -> Value {
    json!({"type": "http", "request": {"url": url}})
}

fn ok_json(body: &str) -> Vec<u8> {
    answer("200 OK", "application/json; charset=utf-8", body.as_bytes())
}

#[tokio::test]
async fn json_comes_back_as_a_value_with_status_and_headers() {
    let server = Server::answering(ok_json(r#"{"a": [1, 2]}"#)).await;
    let output = Bench::new().output(get(&server.url("/x")), json!(null)).await;
    assert_eq!(
        output,
        json!({
            "status": 200,
            "headers": {"content-type": "application/json; charset=utf-8", "content-length": "13"},
            "body": {"a": [1, 2]},
        })
    );
}

#[tokio::test]
async fn a_request_carries_the_query_the_key_and_who_is_calling() {
    let mut server = Server::answering(ok_json("1")).await;
    let request = json!({
        "url": format!("{}?a=1", server.url("/x")),
        "query": {"q": "${{ input.q }}", "none": "${{ input.none }}", "list": [1, 2]},
        "headers": {"X-One": "${{ input.q }}", "X-None": null},
    });
    let node = json!({"type": "http", "request": request});
    Bench::new().output(node, json!({"q": "ä & b", "none": null})).await;
    let request = server.request().await;
    assert!(request.starts_with("get /x?a=1&q=%c3%a4+%26+b&list=%5b1%2c2%5d http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nidempotency-key: {}/n\r\n", run())), "{request}");
    assert!(request.contains("\r\nuser-agent: switchyard/0.1.0\r\n"), "{request}");
    assert!(request.contains("\r\nx-one: ä & b\r\n"), "{request}");
    assert!(!request.contains("x-none"), "{request}");
}

#[tokio::test]
async fn what_the_author_sets_is_left_alone() {
    let mut server = Server::answering(ok_json("1")).await;
    let headers = json!({"Idempotency-Key": "mine", "user-agent": "me", "content-type": "text/csv"});
    let request = json!({"method": "POST", "url": server.url("/"), "headers": headers, "body": "a,b"});
    Bench::new().output(json!({"type": "http", "request": request}), json!(null)).await;
    let request = server.request().await;
    for line in ["idempotency-key: mine", "user-agent: me", "content-type: text/csv"] {
        assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
    }
    assert!(!request.contains(&run().to_string()), "{request}");
}

#[tokio::test]
async fn bodies_are_text_or_json_or_the_input() {
    let bench = Bench::new();
    for (method, body, input, expected) in [
        ("POST", Some(json!("hi ${{ input.name }}")), None, "text/plain; charset=utf-8\r\n|hi you"),
        ("PUT", Some(json!({"n": "${{ input.name }}"})), None, "application/json\r\n|{\"n\":\"you\"}"),
        ("POST", None, Some(json!([1])), "application/json\r\n|[1]"),
        ("GET", None, Some(json!([1])), "|"),
        ("POST", None, None, "|"),
    ] {
        let mut server = Server::answering(ok_json("1")).await;
        let mut node = json!({"type": "http", "request": {"method": method, "url": server.url("/")}});
        if let Some(body) = body {
            node["request"]["body"] = body;
        }
        if let Some(input) = input {
            node["input"] = input;
        }
        bench.output(node, json!({"name": "you"})).await;
        let request = server.request().await;
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let content_type = head.lines().find_map(|line| line.strip_prefix("content-type: "));
        let content_type = content_type.map(|text| format!("{text}\r\n")).unwrap_or_default();
        assert_eq!(format!("{content_type}|{body}"), expected);
    }
}

#[tokio::test]
async fn bodies_that_are_not_json_stay_text_and_bytes_become_base64() {
    let bench = Bench::new();
    let deep = "[".repeat(100_000);
    for (content_type, body, expected) in [
        ("text/plain", b"{}".as_slice(), json!("{}")),
        ("application/json", b"{oops".as_slice(), json!("{oops")),
        ("application/json", deep.as_bytes(), json!(deep)),
        ("application/problem+json", b"{\"a\":1}".as_slice(), json!({"a": 1})),
        ("image/png", b"\xff\xfe\x00".as_slice(), json!({"base64": "//4A"})),
        ("application/json", b"".as_slice(), json!("")),
    ] {
        let server = Server::answering(answer("200 OK", content_type, body)).await;
        let output = bench.output(get(&server.url("/")), json!(null)).await;
        assert_eq!(output["body"], expected);
    }
}

#[tokio::test]
async fn a_status_that_may_pass_is_retried_and_others_are_not() {
    let bench = Bench::new();
    for (status, retryable) in [
        ("503 Service Unavailable", true),
        ("500 Whatever", true),
        ("429 Too Many Requests", true),
        ("425 Too Early", true),
        ("408 Request Timeout", true),
        ("404 Not Found", false),
        ("304 Not Modified", false),
    ] {
        let server = Server::answering(answer(status, "text/plain", b"")).await;
        let error = bench.error(get(&server.url("/x")), json!(null)).await;
        assert_eq!((&*error.code, error.retryable), ("http_status", retryable), "{status}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_was_called_and_what_came_back_without_secrets() {
    let body = format!("no\u{1b}[31m\r\nway {}", "x".repeat(5_000));
    let mut server = Server::answering(answer("503 Nope", "text/plain", body.as_bytes())).await;
    let url = format!("http://me:hush@127.0.0.1:{}/x?key=hush#hush", server.port);
    let error = Bench::new().error(get(&url), json!(null)).await;
    let expected = format!(
        "GET http://127.0.0.1:{}/x answered 503 Service Unavailable: no [31m  way {}",
        server.port,
        "x".repeat(200 - 13)
    );
    assert_eq!(parts(&error), ("http_status", true, expected.as_str()));
    assert!(server.request().await.contains("\r\nauthorization: basic "));
}

#[tokio::test]
async fn expected_statuses_replace_2xx() {
    let bench = Bench::new();
    for (status, succeeds) in [("404 Not Found", true), ("200 OK", false)] {
        let server = Server::answering(answer(status, "text/plain", b"x")).await;
        let node = json!({"type": "http", "request": {"url": server.url("/")}, "expect_status": [404]});
        let result = bench.execute(node, json!(null)).await;
        assert_eq!(result.is_ok(), succeeds, "{status}: {result:?}");
    }
}

#[tokio::test]
async fn answers_that_are_not_http_or_break_off_are_worth_another_attempt() {
    let bench = Bench::new();
    for (bytes, code) in [
        (b"SSH-2.0-OpenSSH_9.6\r\n".as_slice(), "http_protocol"),
        (b"\x00\x01\x02\xff\xfe".as_slice(), "http_protocol"),
        (b"".as_slice(), "http_protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Le".as_slice(), "http_protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello".as_slice(), "http_connect"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".as_slice(), "http_connect"),
    ] {
        let server = Server::answering(bytes).await;
        let error = bench.error(get(&server.url("/")), json!(null)).await;
        assert_eq!((&*error.code, error.retryable), (code, true), "{bytes:?}: {error}");
    }
}

#[tokio::test]
async fn an_answer_may_not_be_too_large_announced_or_not() {
    let bench = Bench::new();
    let bytes_max = super::super::content::CONTENT_BYTES_MAX;
    let announced = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes_max + 1).into_bytes();
    let mut unannounced = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    unannounced.resize(unannounced.len() + bytes_max + 1, b'x');
    for bytes in [announced, unannounced] {
        let server = Server::answering(bytes).await;
        let error = bench.error(get(&server.url("/")), json!(null)).await;
        let expected = format!("GET {} answered with more than {bytes_max} bytes", server.url("/"));
        assert_eq!(parts(&error), ("response_too_large", false, expected.as_str()));
    }
}

#[tokio::test]
async fn nobody_there_is_worth_another_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = Bench::new().error(get(&format!("http://127.0.0.1:{port}/")), json!(null)).await;
    assert_eq!((&*error.code, error.retryable), ("http_connect", true), "{error}");
    assert!(error.message.contains("refused"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_no_https_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let answered = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_buf(&mut Vec::new()).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    };
    let bench = Bench::new();
    let (error, ()) = tokio::join!(bench.error(get(&url), json!(null)), answered);
    assert_eq!((&*error.code, error.retryable), ("http_connect", true), "{error}");
}

#[tokio::test]
async fn a_redirect_is_followed_but_not_for_ever() {
    let bench = Bench::new();
    let there = Server::answering(ok_json("\"here\"")).await;
    let location =
        format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", there.url("/x"));
    let server = Server::answering(location).await;
    assert_eq!(bench.output(get(&server.url("/")), json!(null)).await["body"], json!("here"));

    let circle = "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n";
    let server = Server::answering(circle).await;
    let error = bench.error(get(&server.url("/")), json!(null)).await;
    assert_eq!((&*error.code, error.retryable), ("http_redirect", false), "{error}");
}

fn redirect(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_origin() {
    let bench = Bench::new();
    // Another port of the same machine is another origin.
    let mut there = Server::answering(ok_json("1")).await;
    let here = Server::answering(redirect(307, &there.url("/x"))).await;
    let headers = json!({
        "Authorization": "Bearer hush", "Cookie": "a=hush", "X-Api-Key": "hush", "Private-Token": "hush",
        "X-Client-Secret": "hush", "X-Trace": "kept", "Accept": "text/plain",
    });
    let request = json!({"method": "POST", "url": here.url("/"), "headers": headers, "body": "hello"});
    bench.output(json!({"type": "http", "request": request}), json!(null)).await;
    let seen = there.request().await;
    assert!(!seen.contains("hush"), "{seen}");
    for kept in ["post /x ", "x-trace: kept", "accept: text/plain", "idempotency-key: ", "\r\n\r\nhello"] {
        assert!(seen.contains(kept), "{kept} in {seen}");
    }
    // A name and a password in the URL are credentials too.
    let url = format!("http://me:hush@127.0.0.1:{}/", here.port);
    bench.output(get(&url), json!(null)).await;
    let seen = there.request().await;
    assert!(!seen.contains("authorization"), "{seen}");
}

#[tokio::test]
async fn credentials_follow_a_redirect_to_the_same_origin() {
    let mut server =
        Server::answering_in_turn([redirect(302, "/there?x=1").into_bytes(), ok_json("1")]).await;
    let headers = json!({"Authorization": "Bearer mine", "X-Api-Key": "mine"});
    let request = json!({"method": "POST", "url": server.url("/here"), "headers": headers, "body": "hello"});
    Bench::new().output(json!({"type": "http", "request": request}), json!(null)).await;
    assert!(server.request().await.starts_with("post /here "));
    let seen = server.request().await;
    assert!(seen.starts_with("get /there?x=1 ") && !seen.contains("hello"), "{seen}");
    assert!(seen.contains("authorization: bearer mine") && seen.contains("x-api-key: mine"), "{seen}");
    assert!(!seen.contains("content-type"), "{seen}");
}

#[tokio::test]
async fn link_local_and_metadata_addresses_are_refused_also_behind_a_redirect() {
    let bench = Bench::new();
    for host in
        ["169.254.169.254", "2852039166", "0251.0376.0251.0376", "[fe80::1]", "[::ffff:169.254.169.254]"]
    {
        let error = bench.error(get(&format!("http://{host}/latest")), json!(null)).await;
        assert_eq!((&*error.code, error.retryable), ("http_address", false), "{host}: {error}");
        let server = Server::answering(redirect(302, &format!("http://{host}/latest"))).await;
        let error = bench.error(get(&server.url("/")), json!(null)).await;
        assert_eq!((&*error.code, error.retryable), ("http_address", false), "{host}: {error}");
    }
}

#[tokio::test]
async fn a_name_is_judged_by_the_address_that_it_leads_to() {
    let egress = Arc::new(Egress::default());
    let resolver = http_kind::Resolver(egress);
    let found: Vec<_> = resolver.resolve("localhost".parse().unwrap()).await.unwrap().collect();
    assert!(found.iter().all(|address| address.ip().is_loopback()) && !found.is_empty(), "{found:?}");
    // The system's resolver parses these spellings as addresses, and names in DNS can be aliases of them.
    for name in ["169.254.169.254", "2852039166"] {
        let refused = resolver.resolve(name.parse().unwrap()).await.err().unwrap();
        assert!(refused.to_string().starts_with("169.254.169.254 is a link-local address"), "{refused}");
    }
}

#[tokio::test]
async fn a_server_says_when_to_try_again() {
    let bench = Bench::new();
    let busy = |status: &str, after: &str| {
        format!("HTTP/1.1 {status}\r\nRetry-After: {after}\r\nContent-Length: 0\r\n\r\n")
    };
    for (status, after, expected) in [
        ("429 Too Many Requests", "7", Some(7)),
        ("503 Service Unavailable", "Tue, 14 Nov 2023 22:14:20 GMT", Some(60)),
        ("503 Service Unavailable", "86400", Some(3_600)),
        ("500 Oops", "7", None),
    ] {
        let server = Server::answering(busy(status, after)).await;
        let error = bench.error(get(&server.url("/")), json!(null)).await;
        assert_eq!((&*error.code, error.retryable), ("http_status", true), "{error}");
        assert_eq!(error.retry_after.map(|wait| wait.as_secs()), expected, "{status} {after}");
    }
}

#[tokio::test]
async fn a_redirect_does_not_lead_out_of_http() {
    let server =
        Server::answering("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n")
            .await;
    let error = Bench::new().error(get(&server.url("/")), json!(null)).await;
    assert_eq!((&*error.code, error.retryable), ("http_redirect", false), "{error}");
}

#[tokio::test]
async fn urls_that_are_none_are_refused_without_showing_passwords() {
    let bench = Bench::new();
    for (url, message) in [
        ("ftp://me:hush@example.com/x?hush", "`example.com/x` is not a URL with `http` or `https`"),
        ("http://me:hush@:80/", "`:80/` is not a URL: empty host"),
        ("file:///etc/passwd", "`file:///etc/passwd` is not a URL with `http` or `https`"),
        ("", "`` is not a URL: relative URL without a base"),
    ] {
        let error = bench.error(get("${{ input }}"), json!(url)).await;
        assert_eq!(parts(&error), ("http_url", false, message));
    }
}

#[tokio::test]
async fn data_cannot_smuggle_headers() {
    let bench = Bench::new();
    for (name, value) in [("X-A", "a\r\nX-B: b"), ("X-A", "\0"), ("Content-Length", "5"), ("X A", "a")] {
        let mut headers = serde_json::Map::new();
        headers.insert(name.to_owned(), json!("${{ input }}"));
        let node = json!({"type": "http", "request": {"url": "http://127.0.0.1:1/", "headers": headers}});
        let error = bench.error(node, json!(value)).await;
        assert_eq!((&*error.code, error.retryable), ("http_header", false), "{name}: {error}");
        assert!(!error.message.contains("X-B"), "{error}");
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_hangs_up() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = get(&format!("http://{}/", listener.local_addr().unwrap()));
    let asked = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        server::request(&mut stream).await;
        stream
    };
    let mut stream = tokio::select! {
        stream = asked => stream,
        answer = bench.execute(node, json!(null)) => panic!("{answer:?}"),
    };
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
}
