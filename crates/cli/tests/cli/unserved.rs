//! Reasons why a run waits, and the list of workers.

use crate::harness::{GATE, Sandbox, assert_transcript};

const CALL: &str = "
name: call
nodes:
  work: {type: function, function: enrich}
";

const REVIEW: &str = "
name: review
nodes:
  review: {type: hitl, approver: boss@example.com, prompt: pay?}
";

/// A run whose function no worker serves, left while it waits.
fn left_waiting(sandbox: &Sandbox) -> String {
    let mut running = sandbox.spawn(&["run", "call.yaml"]);
    assert_eq!(running.wait_for("waiting:"), "waiting: no worker serves function `enrich`");
    running.interrupt();
    assert_eq!(running.ends().0, Some(130));
    sandbox.newest_run()
}

#[test]
fn a_run_whose_function_no_worker_serves_says_so() {
    let sandbox = Sandbox::with(&[("call.yaml", CALL)]);
    let _up = sandbox.up();
    let run = left_waiting(&sandbox);
    assert_transcript!(sandbox.transcript(&["runs", "why", &run]), @r#"
    exit 0
    --- stdout
    waiting: no worker serves function `enrich`
    --- stderr
    hint: start a worker that serves it; switchyard workers lists those that are alive
    "#);
    let why = sandbox.json(&["runs", "why", &run, "--json"]);
    let reason = serde_json::json!({"for": "worker", "node": "work", "queue": "function:enrich"});
    assert_eq!((&why["status"], &why["waits"]), (&"running".into(), &serde_json::json!([reason])));
    assert_eq!(sandbox.json(&["runs", "show", &run, "--json"])["waiting"], serde_json::json!([reason]));
    for command in [&["runs", "show", &*run][..], &["runs", "list"], &["queues"]] {
        let shown = sandbox.transcript(command);
        assert!(shown.contains("no worker serves function `enrich`"), "{shown}");
    }
    let queue = &sandbox.json(&["queues", "--json"])["queues"][0];
    assert_eq!((&queue["queue"], &queue["workers"]), (&"function:enrich".into(), &0.into()), "{queue}");
}

#[test]
fn a_folder_says_it_as_well() {
    let sandbox = Sandbox::with(&[("call.yaml", CALL)]);
    left_waiting(&sandbox);
}

#[test]
fn workers_are_listed_with_what_they_serve() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    assert_transcript!(sandbox.transcript(&["workers"]), @r#"
    exit 0
    --- stdout
    --- stderr
    no worker is alive
    "#);
    let _up = sandbox.up();
    let listed = || sandbox.json(&["workers", "--json"])["workers"][0].clone();
    // The worker may report only after the server answers.
    let worker = std::iter::repeat_with(listed).find(|worker| !worker.is_null()).unwrap();
    assert_eq!(
        (&worker["kind"], &worker["alive"], &worker["slots"]),
        (&"process".into(), &true.into(), &64.into())
    );
    assert_eq!(worker["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(worker["functions"], serde_json::json!([]), "functions are left to other programs: {worker}");
    assert!(worker["types"].as_array().unwrap().contains(&"http".into()), "{worker}");
    let shown = sandbox.transcript(&["workers"]);
    assert!(shown.contains("FUNCTIONS") && shown.contains("process"), "{shown}");
}

#[test]
fn what_a_person_can_end_is_told_with_the_command_for_it() {
    let sandbox = Sandbox::with(&[("review.yaml", REVIEW), ("gate.yaml", GATE)]);
    let _up = sandbox.up();
    let review = sandbox.output(&["run", "review.yaml", "--detach"]);
    let review = String::from_utf8(review.stdout).unwrap().trim().to_owned();
    let mut watching = sandbox.spawn(&["runs", "watch", &review]);
    let line = watching.wait_for("waits for approval");
    assert_transcript!(line, @"review waits for approval [APPROVAL] by boss@example.com: pay?");
    assert_transcript!(watching.wait_for("hint:"), @"hint: switchyard approvals approve [APPROVAL] (or reject)");
    assert_transcript!(sandbox.transcript(&["runs", "why", &review]), @r#"
    exit 0
    --- stdout
    waiting: review waits for approval [APPROVAL] by boss@example.com
    --- stderr
    hint: switchyard approvals approve [APPROVAL] (or reject)
    "#);
    let approval = line.split("approval ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    sandbox.output(&["approvals", "approve", &approval]);
    assert_eq!(watching.ends().0, Some(0));
    assert_transcript!(sandbox.transcript(&["runs", "why", &review]), @r#"
    exit 0
    --- stdout
    --- stderr
    [RUN] has ended: succeeded
    "#);
}
