//! The same commands on a folder and through a server on such a folder give the same data, messages and exit codes.

use crate::harness::{GATE, HELLO, Sandbox, assert_transcript, transcript};

const REVIEW: &str = "
name: review
nodes:
  review: {type: hitl, approver: boss, prompt: 'pay ${{ input.amount }}?', input: '${{ input }}'}
  pay: {type: transform, needs: [review], value: '${{ nodes.review.output.comment }}'}
";

const FAILS: &str = "
name: fails
nodes:
  first: {type: transform, value: 1}
  broken: {type: function, function: fail, needs: [first], input: {code: oops, message: 'no luck'}}
";

const OPS: &str = "- {op: add_node, id: extra, node: {type: transform, value: 3}}\n";

/// Runs a scenario on a folder, and on another folder through a server.
fn both_ways(story: impl Fn(&Sandbox)) {
    let files = [
        ("hello.yaml", HELLO),
        ("gate.yaml", GATE),
        ("review.yaml", REVIEW),
        ("fails.yaml", FAILS),
        ("ops.yaml", OPS),
    ];
    story(&Sandbox::with(&files));
    let sandbox = Sandbox::with(&files);
    let up = sandbox.up();
    story(&sandbox);
    up.interrupt();
    assert_eq!(up.ends().0, Some(0));
}

/// The transcript without hints, which differ when a server executes the runs.
fn said(sandbox: &Sandbox, args: &[&str]) -> String {
    let whole = transcript(&sandbox.output(args));
    whole.lines().filter(|line| !line.starts_with("hint: ")).map(|line| format!("{line}\n")).collect()
}

/// The transcript without stderr, which depends on how far the run is.
fn data(sandbox: &Sandbox, args: &[&str]) -> String {
    let whole = transcript(&sandbox.output(args));
    whole.split("--- stderr").next().unwrap().to_owned()
}

/// Starts a run that waits, and interrupts the command that follows it.
fn waiting(sandbox: &Sandbox, args: &[&str], for_what: &str) -> String {
    let mut running = sandbox.spawn(args);
    running.wait_for(for_what);
    running.interrupt();
    assert_eq!(running.ends().0, Some(130));
    sandbox.newest_run()
}

/// The server requires keys after the first one, so the rest of the scenario uses that key.
#[test]
fn keys() {
    both_ways(|sandbox| {
        assert_transcript!(said(sandbox, &["keys", "create", " "]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: the name is empty or not printable
        "#);
        let made = sandbox.json(&["keys", "create", "ci", "--json"]);
        let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
        assert!(key.starts_with(&format!("swk_{id}_")) && key.len() == 4 + 16 + 1 + 64, "{key}");
        let with_key = |args: &[&str]| {
            let mut command = sandbox.command(args);
            command.env("SWITCHYARD_API_KEY", key);
            transcript(&command.output().unwrap()).replace(id, "[KEY]")
        };
        assert_transcript!(with_key(&["keys", "list"]), @r#"
        exit 0
        --- stdout
        KEY  NAME  CREATED  REVOKED
        [KEY]  ci  [TIME]  -
        --- stderr
        "#);
        assert_transcript!(with_key(&["keys", "revoke", "nobody"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no api key `nobody`
        "#);
        assert_transcript!(with_key(&["keys", "revoke", id]), @r#"
        exit 0
        --- stdout
        --- stderr
        [KEY]: revoked
        hint: no key is left: the API refuses every request until you make one (`--server none`, or `up --no-auth`)
        "#);
    });
}

#[test]
fn runs() {
    both_ways(|sandbox| {
        assert_transcript!(said(sandbox, &["run", "hello.yaml", "-i", "name=Ada"]), @r#"
        exit 0
        --- stdout
        {"greeting":"Hello, Ada!"}
        --- stderr
        [RUN] of hello
        greet started
        greet succeeded ([TOOK])
        repeat started
        repeat succeeded ([TOOK])
        "#);
        let run = sandbox.newest_run();
        assert_transcript!(said(sandbox, &["runs", "list"]), @r#"
        exit 0
        --- stdout
        RUN  WORKFLOW  STATUS  ACCEPTED  TOOK  DETAIL
        [RUN]  hello  succeeded  [TIME]  [TOOK]
        --- stderr
        "#);
        assert_transcript!(said(sandbox, &["runs", "show", &run]), @r#"
        exit 0
        --- stdout
        run  [RUN]
        workflow  hello
        status  succeeded
        accepted  [TIME]
        ended  [TIME]
        events  8
        input  {"name":"Ada"}

        NODE  STATUS  ATTEMPTS  STARTED  TOOK  DETAIL
        greet  succeeded  1  [TIME]  [TOOK]
        repeat  succeeded  1  [TIME]  [TOOK]

        output: {"greeting":"Hello, Ada!"}
        --- stderr
        "#);
        assert_transcript!(said(sandbox, &["runs", "events", &run, "--after", "6"]), @r#"
        exit 0
        --- stdout
            7  [TIME]  node_succeeded  {"node":"/output","output":{"greeting":"Hello, Ada!"}}
            8  [TIME]  run_ended  {"status":"succeeded","output":{"greeting":"Hello, Ada!"},"error":null}
        --- stderr
        "#);
        assert_transcript!(said(sandbox, &["runs", "watch", &run]), @r#"
        exit 0
        --- stdout
        {"greeting":"Hello, Ada!"}
        --- stderr
        greet started
        greet succeeded ([TOOK])
        repeat started
        repeat succeeded ([TOOK])
        "#);
        let then = sandbox.json(&["runs", "show", &run, "--at", "2", "--json"]);
        assert_eq!(then["nodes"]["greet"]["status"], "running");
        let document =
            sandbox.json(&["run", "hello.yaml", "-i", "name=Bo", "--json", "--idempotency-key", "k"]);
        let again = sandbox.json(&["run", "hello.yaml", "-i", "name=Bo", "--json", "--idempotency-key", "k"]);
        assert_eq!((&document["run_id"], &document["status"]), (&again["run_id"], &"succeeded".into()));
    });
}

#[test]
fn refusals() {
    both_ways(|sandbox| {
        sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
        let run = sandbox.newest_run();
        assert_transcript!(said(sandbox, &["run", "hello.yaml", "-i", "name=5"]), @r#"
        exit 2
        --- stdout
        --- stderr
        input.name: expected string, found a number
        error: the input is not valid: 1 problem
        "#);
        assert_transcript!(said(sandbox, &["run", "nobody"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is neither a file nor a registered workflow `nobody`
        "#);
        assert_transcript!(said(sandbox, &["runs", "show", "run_00000000000000000000000000"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no run [RUN]
        "#);
        assert_transcript!(said(sandbox, &["runs", "cancel", &run]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: a run that is succeeded cannot be cancelled
        "#);
        assert_transcript!(said(sandbox, &["approvals", "approve", "appr_0"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no approval `appr_0`
        "#);
        assert_transcript!(said(sandbox, &["run", "fails.yaml"]), @r#"
        exit 1
        --- stdout
        --- stderr
        [RUN] of fails
        first started
        first succeeded ([TOOK])
        broken started
        broken failed: no luck (oops)
        error: [RUN] failed: node `broken`, attempt 1: no luck (oops)
        "#);
    });
}

#[test]
fn the_course_of_a_run() {
    both_ways(|sandbox| {
        let run = waiting(sandbox, &["run", "gate.yaml"], "waits for signal");
        assert_transcript!(said(sandbox, &["runs", "pause", &run, "--json"]), @r#"
        exit 0
        --- stdout
        {"run_id":"[RUN]","status":"paused"}
        --- stderr
        [RUN]: paused
        "#);
        assert_transcript!(said(sandbox, &["runs", "resume", &run]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: running
        "#);
        assert_transcript!(said(sandbox, &["patch", "apply", &run, "ops.yaml", "--reason", "more"]), @r#"
        exit 0
        --- stdout
        + node extra
        --- stderr
        [PATCH] made version 2 of the graph
        "#);
        assert_transcript!(said(sandbox, &["patch", "list", &run]), @r#"
        exit 0
        --- stdout
        PATCH  VERSION  AUTHOR  REASON  UNDONE  CHANGES
        [PATCH]  2  ada  more  no  + node extra
        --- stderr
        "#);
        assert_eq!(sandbox.json(&["patch", "list", &run, "--json"])[0]["ops"][0]["id"], "extra");
        let signalled = sandbox.json(&["runs", "signal", &run, "go", "--payload", "5", "--json"]);
        assert_eq!(signalled["run_id"], run);
        assert_transcript!(data(sandbox, &["run", "--resume", &run]), @r#"
        exit 0
        --- stdout
        {"after":{"went":5},"extra":3}
        "#);
        let cancelled = waiting(sandbox, &["run", "gate.yaml"], "waits for signal");
        assert_transcript!(said(sandbox, &["runs", "cancel", &cancelled, "--reason", "enough"]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: cancelled
        "#);
        assert_transcript!(data(sandbox, &["runs", "retry", &cancelled, "--detach"]), @r#"
        exit 0
        --- stdout
        [RUN]
        "#);
        assert_transcript!(data(sandbox, &["runs", "fork", &cancelled, "--from", "gate", "--detach"]), @r#"
        exit 0
        --- stdout
        [RUN]
        "#);
    });
}

#[test]
fn approvals() {
    both_ways(|sandbox| {
        let run = waiting(sandbox, &["run", "review.yaml", "-i", "amount=7"], "waits for approval");
        assert_transcript!(said(sandbox, &["approvals", "list"]), @r#"
        exit 0
        --- stdout
        APPROVAL  RUN  NODE  STATUS  SINCE  APPROVER  PROMPT
        [APPROVAL]  [RUN]  review  pending  [TIME]  boss  pay 7?
        --- stderr
        "#);
        let listed = sandbox.json(&["approvals", "list", "--json"]);
        assert!(listed[0].get("payload").is_none(), "a list carries no payloads: {listed}");
        let approval = listed[0]["approval"].as_str().unwrap().to_owned();
        let shown = sandbox.json(&["approvals", "show", &approval, "--json"]);
        assert_eq!(shown["payload"], serde_json::json!({ "amount": 7 }));
        assert_transcript!(said(sandbox, &["approvals", "show", &approval]), @r#"
        exit 0
        --- stdout
        APPROVAL  RUN  NODE  STATUS  SINCE  APPROVER  PROMPT
        [APPROVAL]  [RUN]  review  pending  [TIME]  boss  pay 7?
        {
          "amount": 7
        }
        --- stderr
        "#);
        let decided = sandbox.json(&["approvals", "approve", &approval, "--comment", "fine", "--json"]);
        assert_eq!(decided["run_id"], run);
        assert_transcript!(data(sandbox, &["run", "--resume", &run]), @r#"
        exit 0
        --- stdout
        "fine"
        "#);
        assert_transcript!(said(sandbox, &["approvals", "reject", &approval]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: the approval was decided already, or its run no longer waits for it
        "#);
    });
}

#[test]
fn workflows_and_schedules() {
    both_ways(|sandbox| {
        assert_transcript!(said(sandbox, &["workflows", "register", "hello.yaml"]), @r#"
        exit 0
        --- stdout
        hello version 1
        --- stderr
        "#);
        assert_transcript!(said(sandbox, &["workflows", "list"]), @r#"
        exit 0
        --- stdout
        WORKFLOW  VERSION  REGISTERED  DEFINITION
        hello  1  [TIME]  [HASH]
        --- stderr
        "#);
        assert_eq!(sandbox.json(&["workflows", "show", "hello"])["name"], "hello");
        assert_transcript!(said(sandbox, &["workflows", "show", "nobody"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no workflow `nobody`
        "#);
        assert_transcript!(data(sandbox, &["run", "hello", "-i", "name=Ada"]), @r#"
        exit 0
        --- stdout
        {"greeting":"Hello, Ada!"}
        "#);
        let create = [
            "schedules",
            "create",
            "morning",
            "hello",
            "--cron",
            "30 9 * * *",
            "--input",
            r#"{"name": "Ada"}"#,
        ];
        assert_transcript!(said(sandbox, &create), @r#"
        exit 0
        --- stdout
        --- stderr
        morning: next at [TIME]
        "#);
        assert_transcript!(said(sandbox, &["schedules", "pause", "morning"]), @r#"
        exit 0
        --- stdout
        --- stderr
        morning: paused
        "#);
        assert_transcript!(said(sandbox, &["schedules", "list"]), @r#"
        exit 0
        --- stdout
        SCHEDULE  WORKFLOW  CRON  TIME ZONE  NEXT  LAST RUN
        morning  hello  30 9 * * *  UTC  paused  -
        --- stderr
        "#);
        assert_eq!(sandbox.json(&["schedules", "resume", "morning", "--json"])["input"]["name"], "Ada");
        assert_eq!(
            sandbox.json(&["schedules", "show", "morning", "--next", "3", "--json"])["upcoming"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
        let span = ["--from", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z"];
        assert_transcript!(said(sandbox, &[&["schedules", "backfill", "morning"][..], &span].concat()), @r#"
        exit 0
        --- stdout
        [TIME] [RUN] started
        --- stderr
        "#);
        assert_transcript!(said(sandbox, &["schedules", "remove", "morning"]), @r#"
        exit 0
        --- stdout
        --- stderr
        morning: removed
        "#);
        assert_transcript!(said(sandbox, &["schedules", "show", "morning"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no schedule `morning`
        "#);
    });
}
