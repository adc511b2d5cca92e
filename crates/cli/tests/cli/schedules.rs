//! `switchyard schedules …`

use crate::harness::{Sandbox, assert_transcript};

const REPORT: &str = "name: report\nnodes:\n  a: {type: transform, value: '${{ input.n }}'}\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with(&[("report.yaml", REPORT)]);
    sandbox.output(&["workflows", "register", "report.yaml"]);
    sandbox
}

#[test]
fn a_schedule_is_created_shown_paused_and_removed() {
    let sandbox = sandbox();
    let create =
        ["schedules", "create", "monthly", "report", "--cron", "0 0 1 1 *", "--input", r#"{"n": 1}"#];
    let output = sandbox.output(&create);
    assert!(output.status.success(), "{output:?}");
    let shown = sandbox.json(&["schedules", "show", "monthly", "--json", "--next", "3"]);
    assert_eq!(shown["time_zone"], "UTC");
    assert_eq!(shown["upcoming"].as_array().unwrap().len(), 3);
    assert!(shown["next_at"].as_str().unwrap().ends_with("-01-01T00:00:00.000Z"), "{shown}");
    assert_transcript!(sandbox.transcript(&["schedules", "pause", "monthly"]), @r"
        exit 0
        --- stdout
        --- stderr
        monthly: paused
    ");
    assert_eq!(sandbox.json(&["schedules", "list", "--json"])[0]["paused"], true);
    assert!(sandbox.output(&["schedules", "remove", "monthly"]).status.success());
    assert_transcript!(sandbox.transcript(&["schedules", "show", "monthly"]), @r"
        exit 2
        --- stdout
        --- stderr
        error: there is no schedule `monthly`
    ");
}

#[test]
fn a_schedule_shows_its_policies_and_what_became_of_its_starts() {
    let sandbox = sandbox();
    let create = ["schedules", "create", "poll", "report", "--cron", "0 0 1 1 *", "--cron", "@yearly"];
    let policies = ["--jitter", "0s", "--catch-up", "all", "--input", r#"{"n": 1}"#];
    sandbox.output(&[&create[..], &policies].concat());
    let run = sandbox.output(&["schedules", "run", "poll"]);
    assert!(String::from_utf8_lossy(&run.stdout).starts_with("run_"), "{run:?}");
    let shown = sandbox.transcript(&["schedules", "show", "poll", "--next", "1"]);
    for expected in
        ["0 0 1 1 *; @yearly", "jitter 0s, overlap skip, catch-up all", "next:\n", "last:\n", "started run_"]
    {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn a_backfill_starts_each_tick_once() {
    let sandbox = sandbox();
    sandbox.output(&[
        "schedules",
        "create",
        "daily",
        "report",
        "--cron",
        "0 6 * * *",
        "--input",
        r#"{"n": 7}"#,
    ]);
    let backfill = [
        "schedules",
        "backfill",
        "daily",
        "--from",
        "2026-01-01T00:00:00Z",
        "--until",
        "2026-01-03T00:00:00Z",
    ];
    assert_eq!(sandbox.transcript(&backfill).matches(" started\n").count(), 2);
    assert_eq!(sandbox.transcript(&backfill).matches(" was started before\n").count(), 2);
    assert!(sandbox.output(&["run", "--resume", "all"]).status.success());
    let runs = sandbox.json(&["runs", "list", "--json"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_no_schedule_is_said_to_be_none() {
    let sandbox = sandbox();
    for (args, expected) in [
        (&["--cron", "every day"][..], "5 fields"),
        (&["--cron", "0 0 * * *", "--time-zone", "Mars/Olympus"], "Mars/Olympus"),
        (&["--cron", "0 0 30 2 *"], "never comes"),
    ] {
        let output = sandbox.output(&[&["schedules", "create", "x", "report"], args].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}
