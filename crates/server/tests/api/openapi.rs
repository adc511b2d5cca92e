//! Compares the generated OpenAPI document with the one in the repository.

use std::path::Path;

use serde_json::Value;

use crate::harness::TestServer;

/// The environment variable that makes the test write the document instead of comparing it.
const UPDATE: &str = "SWITCHYARD_UPDATE_OPENAPI";

fn checked_in() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json")
}

#[test]
fn the_document_that_is_checked_in_is_the_one_that_is_served() {
    let generated = format!("{}\n", serde_json::to_string_pretty(&switchyard_server::openapi()).unwrap());
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(checked_in(), &generated).unwrap();
    }
    let stored = std::fs::read_to_string(checked_in()).unwrap_or_default();
    assert!(
        stored == generated,
        "docs/reference/openapi.json is not what is served; run this test with {UPDATE}=1"
    );
}

#[test]
fn every_reference_leads_somewhere() {
    let document = switchyard_server::openapi();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                references.push(reference.clone());
            }
            fields.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}

#[tokio::test]
async fn every_operation_is_there_and_answers_as_documented() {
    let server = TestServer::start().await;
    let document = server.get("/openapi.json").await.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            // Every path parameter gets an id that does not exist.
            let address = path
                .replace("{run}", "run_00000000000000000000000000")
                .replace("{approval}", "appr_0")
                .replace("{patch}", "patch_0")
                .replace("{schedule}", "nobody")
                .replace("{key}", "nobody")
                .replace("{name}", "nobody");
            let method = method.to_uppercase().parse().unwrap();
            let answer = server.send(method, &address, Some("application/json"), b"{}".to_vec()).await;
            let documented = operation["responses"].get(answer.status.as_str()).is_some();
            assert!(documented, "{path} answers {}, which is not documented: {}", answer.status, answer.body);
            assert_ne!(answer.body["code"], "unknown_route", "{path}");
        }
    }
}

/// An operation without a key changes nothing, or a claim identifies its change.
#[test]
fn every_change_takes_an_idempotency_key() {
    let document = switchyard_server::openapi();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let takes = operation["parameters"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["name"] == "Idempotency-Key"));
            let changes = method != "get" && path != "/v1/validate" && !path.starts_with("/v1/tasks/");
            assert_eq!(takes, changes, "{method} {path}");
        }
    }
}
