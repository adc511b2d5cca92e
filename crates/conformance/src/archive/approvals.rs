//! The row of an approval follows from the events of its run.

use std::sync::Arc;

use switchyard_core::ApprovalId;
use switchyard_core::run::{Decision, EndStatus, EventKind};
use switchyard_store::{ApprovalFilter, ApprovalRecord, ApprovalStatus, Approvals, Archive};

use crate::archive::Backend;
use crate::archive::fixtures::{
    History, accepted, approval_request, at, closing, decided, ended, node_failed, node_waiting, run_id,
};

pub async fn all<B: Backend>(backend: &B) {
    a_question_is_pending(backend).await;
    a_decision_says_who_when_and_why(backend).await;
    a_question_ends_with_its_node_or_run(backend).await;
    a_decided_one_stays_decided(backend).await;
    the_list_is_newest_first_and_filtered(backend).await;
}

async fn asked<B: Backend>(backend: &B, location: &B::Location) -> (Arc<dyn Archive>, History) {
    let archive = backend.open(location).await;
    let mut history = History::of(run_id(0));
    history.put(&*archive, [accepted(), node_waiting("approve", "appr_1")]).await;
    (archive, history)
}

async fn status(archive: &dyn Approvals, approval: &str) -> ApprovalStatus {
    archive.approval(&ApprovalId::new(approval)).await.unwrap().expect("it was asked").status
}

async fn a_question_is_pending<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let (archive, history) = asked(backend, &location).await;
    let request = approval_request("appr_1");
    let expected = ApprovalRecord {
        approval: request.approval.clone(),
        run: history.run,
        node: "approve".into(),
        status: ApprovalStatus::Pending,
        approver: request.approver,
        prompt: request.prompt,
        payload: request.payload,
        created_at: at(2),
        timeout_at: request.timeout_at,
        decided_at: None,
        decided_by: None,
        comment: None,
    };
    assert_eq!(archive.approval(&request.approval).await.unwrap(), Some(expected));
    assert_eq!(archive.approval(&ApprovalId::new("appr_2")).await.unwrap(), None);
}

async fn a_decision_says_who_when_and_why<B: Backend>(backend: &B) {
    for (decision, expected) in
        [(Decision::Approved, ApprovalStatus::Approved), (Decision::Rejected, ApprovalStatus::Rejected)]
    {
        let location = backend.location().await;
        let (archive, mut history) = asked(backend, &location).await;
        history.put(&*archive, [decided("approve", "appr_1", decision)]).await;
        let row = archive.approval(&ApprovalId::new("appr_1")).await.unwrap().unwrap();
        assert_eq!(row.status, expected);
        assert_eq!(row.decided_at, Some(at(3)));
        assert_eq!(row.decided_by.as_deref(), Some("ada"));
        assert_eq!(row.comment.as_deref(), Some("looks right"));
    }
}

async fn a_question_ends_with_its_node_or_run<B: Backend>(backend: &B) {
    for (kind, expected) in [
        (node_failed("approve"), ApprovalStatus::TimedOut),
        (EventKind::NodeCancelled { node: "approve".into() }, ApprovalStatus::Cancelled),
        (closing(), ApprovalStatus::Cancelled),
        (node_failed("another"), ApprovalStatus::Pending),
    ] {
        let name = kind.name();
        let location = backend.location().await;
        let (archive, mut history) = asked(backend, &location).await;
        let mut other = History::of(run_id(1));
        other.put(&*archive, [accepted(), node_waiting("approve", "appr_2")]).await;
        history.put(&*archive, [kind]).await;
        assert_eq!(status(&*archive, "appr_1").await, expected, "after {name}");
        assert_eq!(status(&*archive, "appr_2").await, ApprovalStatus::Pending, "it is another run's");
    }
}

async fn a_decided_one_stays_decided<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let (archive, mut history) = asked(backend, &location).await;
    let rejected = decided("approve", "appr_1", Decision::Rejected);
    history.put(&*archive, [rejected, node_failed("approve"), closing(), ended(EndStatus::Failed)]).await;
    assert_eq!(status(&*archive, "appr_1").await, ApprovalStatus::Rejected);
}

async fn the_list_is_newest_first_and_filtered<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let (archive, mut history) = asked(backend, &location).await;
    let mut other = History::of(run_id(1));
    other.put(&*archive, [accepted(), node_waiting("approve", "appr_2")]).await;
    history.put(&*archive, [decided("approve", "appr_1", Decision::Approved)]).await;
    history.put(&*archive, [node_waiting("again", "appr_3")]).await;

    let all = ApprovalFilter::default();
    let pending = ApprovalFilter { status: Some(ApprovalStatus::Pending), ..all.clone() };
    let of_run = ApprovalFilter { run: Some(history.run), ..all.clone() };
    let both = ApprovalFilter { run: Some(history.run), ..pending.clone() };
    assert_eq!(listed(&*archive, &all).await, ["appr_3", "appr_2", "appr_1"]);
    assert_eq!(listed(&*archive, &pending).await, ["appr_3", "appr_2"]);
    assert_eq!(listed(&*archive, &of_run).await, ["appr_3", "appr_1"]);
    assert_eq!(listed(&*archive, &both).await, ["appr_3"]);
}

async fn listed(archive: &dyn Approvals, filter: &ApprovalFilter) -> Vec<String> {
    let rows = archive.approvals(filter).await.unwrap();
    rows.iter().map(|row| row.approval.to_string()).collect()
}
