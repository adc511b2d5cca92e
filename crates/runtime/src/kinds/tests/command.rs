use std::io::{BufRead, BufReader, Read};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Bench, parts, run};

fn sh(script: &str) -> Value {
    json!({"type": "command", "command": ["sh", "-c", script]})
}

#[tokio::test]
async fn nothing_runs_unless_it_is_allowed() {
    let mut bench = Bench::new();
    bench.services.allow_commands = false;
    let error = bench.error(sh("true"), json!(null)).await;
    let message = "this worker runs no commands; start with --allow-commands if it should";
    assert_eq!(parts(&error), ("commands_not_allowed", false, message));
}

#[tokio::test]
async fn the_input_goes_in_and_the_output_comes_out() {
    let bench = Bench::new();
    let mut node = json!({"type": "command", "command": ["cat"]});
    node["input"] = json!({"a": "${{ input.x }}"});
    assert_eq!(bench.output(node, json!({"x": [1, "é"]})).await, json!({"a": [1, "é"]}));
    for (script, expected) in [
        ("echo hello world", json!("hello world")),
        ("printf 'a\\nb\\n\\n'", json!("a\nb\n")),
        ("echo 12", json!(12)),
        ("true", json!(null)),
        ("echo", json!(null)),
        ("printf '\\377'", json!({"base64": "/w=="})),
    ] {
        assert_eq!(bench.output(sh(script), json!(null)).await, expected, "{script}");
    }
}

#[tokio::test]
async fn data_is_an_argument_and_never_a_script() {
    let node = json!({"type": "command", "command": ["printf", "%s", "${{ input }}"]});
    let evil = "$(echo no); `echo no` \" ' \n --";
    assert_eq!(Bench::new().output(node, json!(evil)).await, json!(evil));
}

#[tokio::test]
async fn a_program_knows_what_it_is_run_for() {
    let script = r#"echo "$SWITCHYARD_RUN_ID $SWITCHYARD_NODE $SWITCHYARD_ATTEMPT $SWITCHYARD_IDEMPOTENCY_KEY $A"; pwd"#;
    let mut node = sh(script);
    node["env"] = json!({"A": "${{ input }}"});
    node["cwd"] = json!("/");
    let output = Bench::new().execute_task(node, json!([1]), |task| task.attempt = 2).await.unwrap().output();
    assert_eq!(output, json!(format!("{0} n 2 {0}/n [1]\n/", run())));
}

#[tokio::test]
async fn a_program_sees_a_few_variables_of_the_worker_and_those_that_are_passed_on() {
    let names = |output: Value| -> Vec<String> {
        let lines = output.as_str().unwrap().lines().map(|line| line.split('=').next().unwrap().to_owned());
        lines.filter(|name| !matches!(name.as_str(), "PWD" | "SHLVL" | "_" | "OLDPWD")).collect()
    };
    let mut bench = Bench::new();
    let mut node = sh("env");
    node["env"] = json!({"MINE": "1"});
    // cargo sets many variables for tests, which must not reach the program; nor must credentials.
    assert!(std::env::vars_os().any(|(name, _)| name == "CARGO_PKG_NAME"));
    let seen = names(bench.output(node.clone(), json!(null)).await);
    assert!(seen.iter().any(|name| name == "PATH") && seen.iter().any(|name| name == "MINE"), "{seen:?}");
    let usual = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "MINE"];
    let strange: Vec<&String> = seen
        .iter()
        .filter(|name| !usual.contains(&name.as_str()))
        .filter(|name| !name.starts_with("LC_") && !name.starts_with("SWITCHYARD_"))
        .collect();
    assert!(strange.is_empty(), "{strange:?}");

    bench.services.commands.env = vec!["CARGO_PKG_*".to_owned()];
    let seen = names(bench.output(node, json!(null)).await);
    assert!(seen.iter().any(|name| name == "CARGO_PKG_NAME"), "{seen:?}");
    assert!(!seen.iter().any(|name| name == "CARGO_MANIFEST_DIR"), "{seen:?}");
}

#[tokio::test]
async fn a_failure_says_how_it_ended_and_what_it_said_last() {
    let bench = Bench::new();
    let error = bench.error(sh("echo first >&2; printf 'b\\033[31mad\\n' >&2; exit 3"), json!(null)).await;
    assert_eq!(parts(&error), ("exit_status", true, "`sh` exited with 3: first\nb[31mad"));
    let error = bench.error(sh("kill -9 $$"), json!(null)).await;
    assert_eq!(parts(&error), ("exit_status", true, "`sh` was killed by signal 9"));
    let error = bench.error(sh("yes x | head -c 100000 >&2; echo end >&2; exit 1"), json!(null)).await;
    assert!(error.message.ends_with("x\nend"), "{error}");
    assert!(error.message.len() < 2_100, "{}", error.message.len());
}

#[tokio::test]
async fn what_cannot_be_started_is_not_tried_again() {
    let bench = Bench::new();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "").unwrap();
    for (command, cwd, code) in [
        (json!(["no-such-program-here"]), "/", "command_not_found"),
        (json!(["true"]), "/no/such/folder", "command_cwd"),
        (json!([path]), "/", "command_start"),
        (json!(["echo", "${{ input }}"]), "/", "command_start"),
    ] {
        let error =
            bench.error(json!({"type": "command", "command": command, "cwd": cwd}), json!("\0")).await;
        assert_eq!((&*error.code, error.retryable), (code, false), "{error}");
    }
}

#[tokio::test]
async fn a_program_need_not_read_its_input() {
    let mut node = sh("exec <&-; echo 1");
    node["input"] = json!("${{ input }}");
    assert_eq!(Bench::new().output(node, json!("x".repeat(1_000_000))).await, json!(1));
}

#[tokio::test]
async fn endless_output_is_cut_off() {
    let error = Bench::new().error(sh("yes"), json!(null)).await;
    assert_eq!(parts(&error), ("output_too_large", false, "`sh` wrote more than 67108864 bytes"));
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    // The background process holds stdout open: unless it is killed, this call does not return.
    assert_eq!(Bench::new().output(sh("sleep 1000 & echo 1"), json!(null)).await, json!(1));
}

#[tokio::test]
async fn a_command_that_is_given_up_is_killed_with_all_it_started() {
    let bench = Bench::new();
    let folder = TempDir::new().unwrap();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let mut node = sh(r#"exec 3>"$FIFO"; echo started >&3; sleep 1000 & wait"#);
    node["env"] = json!({"FIFO": fifo});

    let (started, has_started) = tokio::sync::oneshot::channel();
    let listener = tokio::task::spawn_blocking(move || {
        let mut pipe = BufReader::new(std::fs::File::open(fifo).unwrap());
        let mut line = String::new();
        pipe.read_line(&mut line).unwrap();
        started.send(line).unwrap();
        // Returns when the last process that holds the pipe is gone.
        pipe.read_to_end(&mut Vec::new()).unwrap()
    });
    tokio::select! {
        line = has_started => assert_eq!(line.unwrap(), "started\n"),
        answer = bench.execute(node, json!(null)) => panic!("{answer:?}"),
    }
    assert_eq!(listener.await.unwrap(), 0);
}
