//! Following runs: no event is missing or repeated, through every kind of failure.

use futures::TryStreamExt;
use serde_json::json;
use switchyard_client::{Client, Submission};
use switchyard_core::RunId;

use crate::harness::{TestServer, cutting_proxy, gate};

/// The events in the archive, in the form that clients see.
async fn archived(server: &TestServer, run: RunId) -> Vec<switchyard_client::documents::Event> {
    let events = server.fixture.engine().history().events(run, 0, None).await.unwrap();
    events.iter().map(|event| switchyard_client::documents::Event::of(event).unwrap()).collect()
}

#[tokio::test]
async fn a_stream_is_whole_although_every_connection_is_cut() {
    let server = TestServer::start().await;
    let nodes: serde_json::Map<_, _> = (0..60)
        .map(|n| (format!("n{n}"), json!({ "type": "transform", "value": "x".repeat(n * 7) })))
        .collect();
    let definition = json!({ "name": "many", "nodes": nodes });
    let run = server.client().submit(&Submission::definition(definition, json!({}))).await.unwrap().run_id;
    let proxy = cutting_proxy(server.address, 4_000).await;
    let client = Client::new(&format!("http://{proxy}")).unwrap();
    let seen: Vec<_> = client.follow(run, 0).into_stream().try_collect().await.unwrap();
    assert_eq!(seen, archived(&server, run).await);
    assert!(seen.len() > 120 && seen.last().unwrap().is_end());
    // Follow from the middle, and from the end.
    let rest: Vec<_> = client.follow(run, 100).into_stream().try_collect().await.unwrap();
    assert_eq!(rest, seen[100..]);
    assert_eq!(client.follow(run, seen.len() as u64).next().await.unwrap(), None);
}

#[tokio::test]
async fn a_stream_goes_on_after_a_restart_of_the_server() {
    let server = TestServer::start().await;
    let client = server.client();
    let run = client.submit(&Submission::definition(gate(), json!(null))).await.unwrap().run_id;
    let mut events = client.follow(run, 0);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|kind| kind != "node_waiting") {
        seen.push(events.next().await.unwrap().unwrap().kind.to_string());
    }
    let following = tokio::spawn(async move {
        while let Some(event) = events.next().await.unwrap() {
            seen.push(event.kind.to_string());
        }
        seen
    });
    let server = server.restart().await;
    client.signal(run, "go", &json!(7)).await.unwrap();
    let seen = following.await.unwrap();
    let kinds: Vec<_> = archived(&server, run).await.iter().map(|event| event.kind.to_string()).collect();
    assert_eq!(seen, kinds);
    assert_eq!(client.run(run).await.unwrap().output.get(), "7");
}

#[tokio::test]
async fn pages_follow_each_other() {
    let server = TestServer::start().await;
    let client = server.client();
    let run = client.submit(&Submission::definition(gate(), json!(null))).await.unwrap().run_id;
    client.signal(run, "go", &json!(1)).await.unwrap();
    let whole = client.follow(run, 0).into_stream().try_collect::<Vec<_>>().await.unwrap();
    let (mut after, mut paged) = (0, Vec::new());
    loop {
        let page = client.events(run, after, 2).await.unwrap();
        paged.extend(page.events);
        match page.next {
            Some(next) => after = next,
            None => break assert!(page.ended),
        }
    }
    assert_eq!(paged, whole);
}
