//! Valid and invalid requests generated from the OpenAPI document: no response is a 5xx, and none is undocumented.

use std::path::Path;
use std::process::Stdio;

use switchyard_runtime::{Principal, ids};

use crate::harness::TestServer;

/// The environment variable with the path of schemathesis. `cargo xtask test` installs it and sets this.
const PROGRAM: &str = "SWITCHYARD_SCHEMATHESIS";

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method";

/// Routes that take definitions get fewer examples, because schemathesis is slow to generate definitions.
const WITH_DEFINITIONS: &str = "^/v1/(validate|workflows|runs|runs/.run./(fork|patches))$";

async fn run(server: &TestServer, args: &[&str]) {
    let program = std::env::var_os(PROGRAM).expect("SWITCHYARD_SCHEMATHESIS says where schemathesis is");
    let mut command = tokio::process::Command::new(program);
    command.args([
        "run",
        &server.url("/openapi.json"),
        "--seed",
        "1",
        // One worker: a dependency of schemathesis parses its own sources, which CPython 3.11 cannot do in several
        // threads.
        "--workers",
        "1",
        "--request-timeout",
        "60",
    ]);
    command.args(["--warnings", "off", "--no-shrink", "--suppress-health-check", "all"]).args(args);
    // schemathesis leaves files in its working directory.
    command.current_dir(&server.data).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api"));
    command.env("SCHEMATHESIS_HOOKS", "schemathesis_hooks").env("NO_PROXY", "127.0.0.1").stdin(Stdio::null());
    let output = command.output().await.expect("schemathesis starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    server.get("/readyz").await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs schemathesis, which `cargo xtask test` installs"]
async fn nothing_that_can_be_made_up_is_answered_with_a_5xx_or_undocumented() {
    let server = TestServer::start().await;
    server.post("/v1/workflows", crate::harness::hello()).await.expect(200);
    // Excluded, because once a key exists the server rejects all requests without it.
    let common = ["--checks", CHECKS, "--exclude-operation-id", "createKey"];
    let plain =
        ["--phases", "coverage,fuzzing", "--max-examples", "5", "--exclude-path-regex", WITH_DEFINITIONS];
    run(&server, &[&common[..], &plain].concat()).await;
    let rest = ["--phases", "fuzzing", "--max-examples", "10", "--include-path-regex", WITH_DEFINITIONS];
    run(&server, &[&common[..], &rest].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs schemathesis, which `cargo xtask test` installs"]
async fn nothing_is_answered_without_a_key_where_keys_are_wanted() {
    let server = TestServer::start().await;
    let key = server
        .fixture
        .engine()
        .keys()
        .create(&Principal::local("tester"), &ids::operation_id(), "schemathesis", None)
        .await
        .unwrap();
    let header = format!("Authorization: Bearer {}", key.text.unwrap());
    let checks = format!("{CHECKS},ignored_auth");
    let some = ["--phases", "fuzzing", "--max-examples", "5", "--exclude-path-regex", WITH_DEFINITIONS];
    run(&server, &[&["--checks", checks.as_str(), "--header", &header][..], &some].concat()).await;
}
