//! Approvals: a person approves or rejects.

use crate::harness::{Sandbox, assert_transcript};

const REVIEW: &str = "
name: review
nodes:
  draft: {type: transform, value: {amount: 7}}
  review:
    type: hitl
    needs: [draft]
    approver: boss@example.com
    prompt: 'pay ${{ nodes.draft.output.amount }}?'
    input: '${{ nodes.draft.output }}'
  pay: {type: transform, needs: [review], value: paid}
";

/// A run that was interrupted while it waited, and its approval.
fn waiting(sandbox: &Sandbox) -> (String, String) {
    let mut running = sandbox.spawn(&["run", "review.yaml"]);
    running.wait_for("waits for approval");
    running.wait_for("hint:");
    running.interrupt();
    let (code, said) = running.ends();
    assert_eq!(code, Some(130));
    assert_transcript!(said, @r#"
        [RUN] of review
        draft started
        draft succeeded ([TOOK])
        review started
        review waits for approval [APPROVAL] by boss@example.com: pay 7?
        hint: stop with Ctrl-C, then switchyard approvals approve [APPROVAL] (or reject), then switchyard run --resume [RUN]
        interrupted: nothing is lost, and it can be resumed
        hint: switchyard run --resume [RUN]
    "#);
    let approvals = sandbox.json(&["approvals", "list", "--json"]);
    let approval = approvals[0]["approval"].as_str().unwrap().to_owned();
    (sandbox.newest_run(), approval)
}

#[test]
fn an_approved_run_goes_on() {
    let sandbox = Sandbox::with(&[("review.yaml", REVIEW)]);
    let (run, approval) = waiting(&sandbox);
    assert_transcript!(sandbox.transcript(&["approvals", "list"]), @r#"
        exit 0
        --- stdout
        APPROVAL  RUN  NODE  STATUS  SINCE  APPROVER  PROMPT
        [APPROVAL]  [RUN]  review  pending  [TIME]  boss@example.com  pay 7?
        --- stderr
    "#);
    assert_transcript!(sandbox.transcript(&["approvals", "approve", &approval, "--comment", "fine"]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: running
        hint: no worker runs now; carry it on with switchyard run --resume [RUN]
    "#);
    assert_transcript!(sandbox.transcript(&["approvals", "approve", &approval]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: the approval was decided already, or its run no longer waits for it
    "#);
    assert_eq!(sandbox.json(&["run", "--resume", &run]), serde_json::json!("paid"));
    assert_transcript!(sandbox.transcript(&["approvals", "list"]), @r#"
        exit 0
        --- stdout
        --- stderr
        no approvals
    "#);
    let all = sandbox.json(&["approvals", "list", "--all", "--run", &run, "--json"]);
    let decided = (&all[0]["status"], &all[0]["decided_by"], &all[0]["comment"]);
    assert_eq!(decided, (&"approved".into(), &"ada".into(), &"fine".into()));
}

#[test]
fn a_rejected_run_fails() {
    let sandbox = Sandbox::with(&[("review.yaml", REVIEW)]);
    let (run, approval) = waiting(&sandbox);
    assert_transcript!(
        sandbox.transcript(&["approvals", "reject", &approval, "--by", "boss", "--comment", "too much"]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: failed
    "#);
    let failed = sandbox.transcript(&["run", "--resume", &run]);
    assert_transcript!(failed, @r#"
        exit 1
        --- stdout
        --- stderr
        error: [RUN] failed: node `review`, attempt 1: rejected by boss: too much (rejected)
        hint: switchyard runs retry [RUN]
    "#);
}

#[test]
fn an_approval_of_a_child_is_told_too() {
    let parent = "name: parent\nnodes: {child: {type: workflow, file: review.yaml}}";
    let sandbox = Sandbox::with(&[("review.yaml", REVIEW), ("parent.yaml", parent)]);
    let mut running = sandbox.spawn(&["run", "parent.yaml"]);
    let line = running.wait_for("waits for approval");
    assert_transcript!(line, @r#"review of [RUN] waits for approval [APPROVAL] by boss@example.com: pay 7?"#);
    running.interrupt();
    running.ends();
}

#[test]
fn ids_are_checked() {
    let sandbox = Sandbox::with(&[("review.yaml", REVIEW)]);
    waiting(&sandbox);
    assert_eq!(sandbox.output(&["approvals", "approve", "nonsense"]).status.code(), Some(2));
    assert_transcript!(sandbox.transcript(&["approvals", "approve", "appr_0000000000000000"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no approval `[APPROVAL]`
    "#);
}
