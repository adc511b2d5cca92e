//! The store of large payloads, and retention.

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// A workflow whose output is too large to be stored inline.
fn large() -> Value {
    json!({ "name": "large", "nodes": { "copy": { "type": "transform", "value": "${{ input.text }}" } } })
}

#[cfg(feature = "object-stores")]
fn files_in(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files_in(&entry.path()) } else { 1 }).sum()
}

#[cfg(feature = "object-stores")]
#[tokio::test]
async fn payloads_lie_where_the_settings_say() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("file://{}/payloads", folder.path().display());
    let mut fixture = Fixture::with(&[("SWITCHYARD_CAS", &place)]);
    let text = "large ".repeat(5_000);
    let run = fixture.submitted_with(&large(), &json!({ "text": text })).await;
    let view = fixture.until(&run, |view| view["status"] == "succeeded").await;
    assert_eq!(view["output"], text.as_str());
    assert!(files_in(&folder.path().join("payloads")) > 0);
    fixture.assert_all_run();
}

#[tokio::test]
async fn what_is_not_kept_goes() {
    let mut fixture = Fixture::with(&[("SWITCHYARD_RETENTION_KEEP_RUNS", "1")]);
    let mut runs = Vec::new();
    for _ in 0..3 {
        let run = fixture.submitted_with(&large(), &json!({ "text": "small" })).await;
        fixture.until(&run, |view| view["status"] == "succeeded").await;
        runs.push(run);
    }
    // A process applies retention when it starts.
    fixture.start_another();
    fixture.until_gone(&runs[0]).await;
    fixture.until_gone(&runs[1]).await;
    assert!(fixture.get(&format!("/v1/runs/{}", runs[2])).await.status().is_success());
}
