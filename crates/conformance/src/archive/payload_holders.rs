//! Finds the payloads of the CAS that an archive still mentions.

use std::time::Duration;

use switchyard_core::run::{Accepted, EndStatus, EventKind};
use switchyard_core::schedule::Schedule;
use switchyard_core::{CasRef, Hash, Payload, Timestamp};
use switchyard_store::{PayloadHolders, RetentionPolicy, ScheduleRecord};

use crate::archive::Backend;
use crate::archive::fixtures::{History, acceptance, accepted_as, at, run_id};

pub async fn all<B: Backend>(backend: &B) {
    payloads_of_runs_are_held(backend).await;
    payloads_elsewhere_are_held(backend).await;
}

const BATCH: usize = 100;

fn large(content: &str) -> Payload {
    Payload::Cas(CasRef { hash: Hash::of(content.as_bytes()), bytes: 70_000 })
}

/// The payloads, of `a`, `b`, …, that are held.
async fn held(archive: &dyn PayloadHolders, of: &str, since: Timestamp) -> String {
    let names: Vec<String> = of.chars().map(String::from).collect();
    let hashes: Vec<Hash> = names.iter().map(|name| Hash::of(name.as_bytes())).collect();
    let held = archive.held_payloads(&hashes, since).await.unwrap();
    names.into_iter().filter(|name| held.contains(&Hash::of(name.as_bytes()))).collect()
}

async fn payloads_of_runs_are_held<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let with_input = |name: &str| accepted_as(Accepted { input: large(name), ..acceptance() });
    let succeeded =
        |name: &str| EventKind::NodeSucceeded { node: "n".into(), output: large(name), cached: false };
    let end =
        |name: &str| EventKind::RunEnded { status: EndStatus::Succeeded, output: large(name), error: None };
    History::of(run_id(0)).put(&*archive, [with_input("a"), succeeded("b"), end("c")]).await;
    History::of(run_id(1)).put(&*archive, [with_input("b"), succeeded("d")]).await;
    drop(archive);
    let archive = backend.open(&location).await;
    assert_eq!(held(&*archive, "abcdx", at(100)).await, "abcd");
    assert_eq!(held(&*archive, "", at(100)).await, "");

    // A fork may be about to mention a payload of the run that was just removed.
    let nothing = RetentionPolicy { keep_for: Some(Duration::ZERO), ..RetentionPolicy::default() };
    assert_eq!(archive.retain(&nothing, at(50), BATCH).await.unwrap(), 1);
    assert_eq!(held(&*archive, "abcdx", at(49)).await, "abcd");
    assert_eq!(held(&*archive, "abcdx", at(50)).await, "bd");
    let later = RetentionPolicy { payload_grace: Duration::from_secs(10), ..RetentionPolicy::default() };
    archive.retain(&later, at(59), BATCH).await.unwrap();
    assert_eq!(held(&*archive, "ac", at(49)).await, "ac", "remembered during the grace");
}

async fn payloads_elsewhere_are_held<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    archive.cache("save", "k", large("a"), at(0), Duration::from_secs(10)).await.unwrap();
    archive.cache("save", "l", large("a"), at(0), Duration::from_secs(5)).await.unwrap();
    assert_eq!(held(&*archive, "a", at(9)).await, "a");
    assert_eq!(held(&*archive, "a", at(10)).await, "");

    let schedule = |input: &str| {
        let spec = serde_json::json!({
            "name": "nightly", "workflow": "report", "cron": "0 1 * * *", "time_zone": "UTC",
            "input": large(input),
        });
        let schedule: Schedule = serde_json::from_value(spec).expect("a schedule");
        ScheduleRecord { schedule, next_at: None, last_run: None }
    };
    archive.put_schedule(schedule("b")).await.unwrap();
    assert_eq!(held(&*archive, "bc", at(1_000)).await, "b");
    archive.put_schedule(schedule("c")).await.unwrap();
    assert_eq!(held(&*archive, "bc", at(1_000)).await, "c");
    archive.remove_schedule("nightly").await.unwrap();
    assert_eq!(held(&*archive, "bc", at(1_000)).await, "");
}
