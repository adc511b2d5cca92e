//! Lost responses: the client repeats every change with its id, and the server makes it once.

use serde_json::json;
use switchyard_client::{Client, Error, NewSchedule, OperationId, RunsQuery, Submission};
use switchyard_core::schedule::{CatchUp, Overlap};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::harness::{TestServer, cutting_proxy, gate, hello};

/// A client behind a proxy that truncates responses; it repeats a request until it gets a whole response.
async fn through_proxy(server: &TestServer) -> Client {
    let proxy = cutting_proxy(server.address, 500).await;
    Client::builder(&format!("http://{proxy}")).tries(50).build().unwrap()
}

/// The address of a server that reads requests and never answers.
async fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1_024]).await;
        }
    });
    address
}

fn nightly() -> NewSchedule {
    NewSchedule {
        workflow: "hello".into(),
        version: None,
        input: json!({"name": "Ada"}),
        cron: "0 1 * * *".into(),
        time_zone: "UTC".into(),
        jitter: std::time::Duration::ZERO,
        overlap: Overlap::Skip,
        catch_up: CatchUp::Last,
        paused: false,
        labels: Default::default(),
    }
}

#[tokio::test]
async fn every_submission_is_one_run_with_a_key_and_without() {
    let server = TestServer::start().await;
    let client = through_proxy(&server).await;
    for n in 0..5 {
        let keyed = Submission::definition(hello(), json!({"name": n})).idempotency_key(&format!("k{n}"));
        client.submit(&keyed).await.unwrap();
        client.submit(&Submission::definition(hello(), json!({"name": "x"}))).await.unwrap();
    }
    let listed = server.client().runs(&RunsQuery::default()).await.unwrap().runs.len();
    assert_eq!(listed, 10);
}

#[tokio::test]
async fn a_signal_whose_answer_is_lost_is_one_signal() {
    let server = TestServer::start().await;
    let client = through_proxy(&server).await;
    let run = server.client().submit(&Submission::definition(gate(), json!(null))).await.unwrap().run_id;
    for n in 0..5 {
        client.signal(run, "other", &json!(n)).await.unwrap();
    }
    let events = server.client().events(run, 0, 100).await.unwrap().events;
    let signals = events.iter().filter(|event| &*event.kind == "signal_received").count();
    assert_eq!(signals, 5);
}

#[tokio::test]
async fn what_was_removed_is_not_said_to_be_missing() {
    let server = TestServer::start().await;
    let client = through_proxy(&server).await;
    client.register_workflow(&hello()).await.unwrap();
    for _ in 0..5 {
        client.put_schedule("nightly", &nightly()).await.unwrap();
        client.pause_schedule("nightly", true).await.unwrap();
        client.remove_schedule("nightly").await.unwrap();
    }
    let missing = client.remove_schedule("nightly").await.unwrap_err();
    assert_eq!(missing.code(), Some("unknown_schedule"), "{missing}");
}

/// Once the first key exists the server rejects every request without it, even if the client did not get the response.
#[tokio::test]
async fn the_first_key_is_in_hand_however_often_its_answer_is_lost() {
    for _ in 0..5 {
        let server = TestServer::start().await;
        let made = through_proxy(&server).await.create_key("ada").await.unwrap();
        assert_eq!(server.client().keys().await.unwrap_err().code(), Some("no_key"));
        let address = format!("http://{}", server.address);
        let holder = Client::builder(&address).api_key(made.text.to_string()).build().unwrap();
        let keys = holder.keys().await.unwrap();
        assert_eq!((keys.len(), &keys[0]), (1, &made.record));
        assert!(holder.revoke_key(&made.record.id).await.unwrap().revoked_at.is_some());
    }
}

#[tokio::test]
async fn a_change_that_was_not_answered_is_told_with_its_id_and_can_be_repeated() {
    let mute = Client::builder(&silent().await).tries(2).build().unwrap();
    let unknown = mute.submit(&Submission::definition(hello(), json!({"name": "Ada"}))).await.unwrap_err();
    let Error::OutcomeUnknown { operation, .. } = &unknown else { panic!("{unknown:?}") };
    assert!(unknown.is_unreachable() && unknown.to_string().contains("not known"), "{unknown}");
    let server = TestServer::start().await;
    let again = server.client().with_operation_id(operation.clone());
    let wanted = Submission::definition(hello(), json!({"name": "Ada"}));
    let first = again.submit(&wanted).await.unwrap().run_id;
    assert_eq!(
        again.submit_once(&wanted).await.map(|(run, before)| (run.run_id, before)).unwrap(),
        (first, true)
    );
}

/// Without a connection nothing can have happened, and a read changes nothing.
#[tokio::test]
async fn what_cannot_have_happened_is_not_called_unknown() {
    let closed = Client::builder("http://127.0.0.1:1").tries(2).build().unwrap();
    let refused = closed.remove_schedule("nightly").await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable { .. }), "{refused:?}");
    let mute = Client::builder(&silent().await).tries(2).build().unwrap();
    let unheard = mute.schedules().await.unwrap_err();
    assert!(matches!(unheard, Error::Unreachable { .. }), "{unheard:?}");
    let chosen = OperationId::new("mine").unwrap();
    let unknown = mute.with_operation_id(chosen.clone()).remove_schedule("nightly").await.unwrap_err();
    assert!(
        matches!(&unknown, Error::OutcomeUnknown { operation, .. } if *operation == chosen),
        "{unknown:?}"
    );
}
