//! Bulk jobs: their position and their results.

use switchyard_core::OperationId;
use switchyard_store::{
    Archive, BulkAction, BulkCounts, BulkJob, BulkOutcome, BulkProgress, BulkResult, BulkStatus, Mutation,
    OperationRequest,
};

use super::Backend;
use super::fixtures::*;

pub async fn all<B: Backend>(backend: &B) {
    a_job_is_kept_and_started_once(backend).await;
    progress_is_kept_and_never_falls_back(backend).await;
    a_stopped_job_stays_stopped(backend).await;
}

fn job(id: &str) -> BulkJob {
    BulkJob {
        id: id.into(),
        action: BulkAction::Cancel { reason: "too \"late\"".into(), compensate: false, now: true },
        filter: "status=running created_before=2026-01-01T00:00:00Z".into(),
        by: "ada".into(),
        created_at: at(1),
        status: BulkStatus::Running,
        ended_at: None,
        cursor: None,
    }
}

async fn start(archive: &dyn Archive, id: &str) -> BulkJob {
    archive.mutate(Mutation::StartBulk(Box::new(job(id))), None).await.unwrap().bulk().unwrap()
}

fn result(n: u32, outcome: BulkOutcome) -> BulkResult {
    let detail = (outcome != BulkOutcome::Done).then(|| "why".into());
    BulkResult { run_id: run_id(n), outcome, detail }
}

fn progress(results: Vec<BulkResult>, done: bool) -> BulkProgress {
    let cursor = results.last().map(|result| result.run_id);
    BulkProgress { id: "bulk_1".into(), results, cursor, ended_at: done.then(|| at(9)) }
}

async fn a_job_is_kept_and_started_once<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let request = OperationRequest::new(OperationId::drawn(1), "start_bulk", &"x", at(1)).unwrap();
    for _ in 0..2 {
        let started = archive.mutate(Mutation::StartBulk(Box::new(job("bulk_1"))), Some(&request)).await;
        assert_eq!(started.unwrap().bulk().unwrap(), job("bulk_1"));
    }
    start(&*archive, "bulk_2").await;
    drop(archive);
    let archive = backend.open(&location).await;
    assert_eq!(archive.bulk_job("bulk_1").await.unwrap(), Some(job("bulk_1")));
    assert_eq!(archive.bulk_job("bulk_3").await.unwrap(), None);
    assert_eq!(archive.bulk_jobs(10).await.unwrap(), [job("bulk_2"), job("bulk_1")]);
    assert_eq!(archive.bulk_jobs(1).await.unwrap(), [job("bulk_2")]);
    assert_eq!(archive.open_bulk_jobs().await.unwrap(), [job("bulk_1"), job("bulk_2")]);
}

async fn progress_is_kept_and_never_falls_back<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    start(&*archive, "bulk_1").await;
    let (done, skipped, failed) = (BulkOutcome::Done, BulkOutcome::Skipped, BulkOutcome::Failed);
    let first = vec![result(1, done), result(2, skipped)];
    archive.record_bulk(progress(first.clone(), false)).await.unwrap();
    archive.record_bulk(progress(vec![result(3, failed)], false)).await.unwrap();
    // A slower process records an earlier page.
    archive.record_bulk(progress(vec![result(1, failed)], false)).await.unwrap();
    let now = archive.bulk_job("bulk_1").await.unwrap().unwrap();
    assert_eq!((now.cursor, now.status, now.ended_at), (Some(run_id(3)), BulkStatus::Running, None));
    assert_eq!(archive.bulk_counts("bulk_1").await.unwrap(), BulkCounts { done: 1, skipped: 1, failed: 1 });
    archive.record_bulk(progress(vec![], true)).await.unwrap();
    let ended = archive.bulk_job("bulk_1").await.unwrap().unwrap();
    assert_eq!(
        (ended.cursor, ended.status, ended.ended_at),
        (Some(run_id(3)), BulkStatus::Done, Some(at(9)))
    );
    assert!(archive.open_bulk_jobs().await.unwrap().is_empty());
    assert_eq!(archive.bulk_results("bulk_1", None, 2).await.unwrap(), first);
    let rest = archive.bulk_results("bulk_1", Some(run_id(2)), 2).await.unwrap();
    assert_eq!(rest, [result(3, failed)]);
}

async fn a_stopped_job_stays_stopped<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    start(&*archive, "bulk_1").await;
    let stop = |id: &str| Mutation::StopBulk { id: id.into(), at: at(5) };
    assert!(archive.mutate(stop("bulk_1"), None).await.unwrap().changed().unwrap());
    assert!(!archive.mutate(stop("bulk_1"), None).await.unwrap().changed().unwrap());
    assert!(!archive.mutate(stop("bulk_2"), None).await.unwrap().changed().unwrap());
    archive.record_bulk(progress(vec![result(1, BulkOutcome::Done)], true)).await.unwrap();
    let job = archive.bulk_job("bulk_1").await.unwrap().unwrap();
    assert_eq!((job.status, job.ended_at), (BulkStatus::Stopped, Some(at(5))));
    assert!(archive.open_bulk_jobs().await.unwrap().is_empty());
}
