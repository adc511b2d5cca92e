//! Which runs a filter finds, in which order, and how many.

use switchyard_core::error::RunError;
use switchyard_core::run::{Accepted, EndStatus, EventKind, ParentLink, RunStatus};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{Archive, RunCount, RunFilter, RunOrder, TimeRange};

use super::Backend;
use super::fixtures::*;

pub async fn all<B: Backend>(backend: &B) {
    each_condition_holds(backend).await;
    conditions_hold_together(backend).await;
    pages_follow_each_other_in_both_orders(backend).await;
    counting_stops_where_it_is_told(backend).await;
    a_run_shows_what_it_is_found_by(backend).await;
    a_run_that_starts_over_has_no_error(backend).await;
}

fn failed_at(node: &str, code: &str, message: &str) -> EventKind {
    let error = RunError { node: Some(node.into()), attempt: Some(1), ..RunError::of_run(code, message) };
    EventKind::RunEnded { status: EndStatus::Failed, output: Payload::null(), error: Some(error) }
}

fn labelled_with(pairs: &[(&str, &str)]) -> Accepted {
    Accepted { labels: labels(pairs), ..acceptance() }
}

fn child_of(parent: RunId, node: &str) -> Accepted {
    let parent = Some(ParentLink { run: parent, node: node.into(), index: 0, depth: 1 });
    Accepted { parent, ..labelled_with(&[("team", "search")]) }
}

/// Runs 0 to 7, as the comments say.
async fn filled(archive: &dyn Archive) {
    let scheduled = Accepted { schedule: Some("nightly".into()), ..labelled_with(&[("team", "ads")]) };
    let refused = || failed_at("fetch", "http_status", "503 from \"api\" \\ Gateway Timeout");
    for (n, kinds) in [
        (0, vec![accepted_as(labelled_with(&[("env", "prod"), ("team", "search")]))]),
        (1, vec![accepted_as(labelled_with(&[("env", "test"), ("team", "search")])), refused()]),
        (2, vec![accepted_as(scheduled), failed_at("charge", "timeout", "no answer")]),
        (3, vec![accepted(), ended(EndStatus::Succeeded)]),
        (4, vec![accepted_as(child_of(run_id(0), "each"))]),
        (5, vec![accepted_as(child_of(run_id(0), "again")), refused()]),
        (6, vec![accepted(), ended(EndStatus::Cancelled)]),
        (7, vec![accepted(), paused()]),
    ] {
        History::of(run_id(n)).put(archive, kinds).await;
    }
}

async fn found(archive: &dyn Archive, text: &str) -> Vec<u32> {
    let filter = RunFilter { limit: 100, ..RunFilter::parse(text, BEGIN).expect("a filter") };
    let page = archive.runs(&filter).await.unwrap();
    let count = archive.count_runs(&filter, None).await.unwrap();
    assert_eq!(count, RunCount { runs: page.items.len() as u64, more: false }, "{text}");
    let number = |id: RunId| u32::try_from(id.at().as_millis() - BEGIN.as_millis()).unwrap();
    page.items.iter().map(|run| number(run.run_id)).collect()
}

async fn each_condition_holds<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    filled(&*archive).await;
    let third = Timestamp::from_millis(BEGIN.as_millis() + 3);
    let second_event = at(2);
    for (text, expected) in [
        ("", vec![7, 6, 3, 2, 1, 0]),
        ("children=true", vec![7, 6, 5, 4, 3, 2, 1, 0]),
        ("order=oldest", vec![0, 1, 2, 3, 6, 7]),
        ("status=failed", vec![2, 1]),
        ("status=failed,cancelled,paused", vec![7, 6, 2, 1]),
        ("status=failed,paused order=oldest", vec![1, 2, 7]),
        ("label=team=search", vec![1, 0]),
        ("label=team=search children=true", vec![5, 4, 1, 0]),
        ("label=team=search label=env=test", vec![1]),
        ("label=team=sear", vec![]),
        (&format!("parent={}", run_id(0)), vec![5, 4]),
        (&format!("parent={} label=team=search status=failed", run_id(0)), vec![5]),
        ("schedule=nightly", vec![2]),
        ("node=fetch", vec![6, 1]),
        ("node=fetch children=true", vec![6, 5, 1]),
        ("code=timeout", vec![2]),
        (&format!("created_after={third}"), vec![7, 6, 3]),
        (&format!("created_before={third}"), vec![2, 1, 0]),
        (&format!("created_before={third} status=failed,running"), vec![2, 1, 0]),
        (&format!("ended_after={second_event}"), vec![6, 3, 2, 1]),
        (&format!("ended_before={second_event}"), vec![]),
        (&format!("ended_after={second_event} code=timeout"), vec![2]),
        (&format!("error=\"gateway TIMEOUT\" created_after={BEGIN}"), vec![1]),
        (&format!(r#"error="from \"api\" \\ g" created_after={BEGIN}"#), vec![1]),
        (&format!("error=% created_after={BEGIN}"), vec![]),
    ] {
        assert_eq!(found(&*archive, text).await, expected, "{text}");
    }
}

async fn conditions_hold_together<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    filled(&*archive).await;
    for (text, expected) in [
        ("status=failed label=team=search", vec![1]),
        ("status=failed label=team=ads code=timeout node=charge schedule=nightly workflow=enrich", vec![2]),
        ("status=failed label=team=ads code=timeout node=fetch", vec![]),
        ("code=http_status workflow=other", vec![]),
        ("schedule=nightly status=running", vec![]),
    ] {
        assert_eq!(found(&*archive, text).await, expected, "{text}");
    }
}

async fn pages_follow_each_other_in_both_orders<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    filled(&*archive).await;
    for (order, expected) in [
        (RunOrder::Newest, vec![vec![7, 6], vec![2, 1], vec![0]]),
        (RunOrder::Oldest, vec![vec![0, 1], vec![2, 6], vec![7]]),
    ] {
        let statuses = vec![RunStatus::Failed, RunStatus::Paused, RunStatus::Cancelled, RunStatus::Running];
        let mut filter = RunFilter { statuses, order, limit: 2, ..RunFilter::default() };
        let mut pages = Vec::new();
        loop {
            let page = archive.runs(&filter).await.unwrap();
            pages.push(page.items.iter().map(|run| run.run_id).collect::<Vec<_>>());
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => break,
            }
        }
        let expected: Vec<Vec<RunId>> =
            expected.into_iter().map(|page| page.into_iter().map(run_id).collect()).collect();
        assert_eq!(pages, expected);
    }
}

async fn counting_stops_where_it_is_told<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    filled(&*archive).await;
    let filter = RunFilter { statuses: vec![RunStatus::Failed, RunStatus::Running], ..RunFilter::default() };
    for (max, expected) in [
        (Some(2), RunCount { runs: 2, more: true }),
        (Some(3), RunCount { runs: 3, more: false }),
        (None, RunCount { runs: 3, more: false }),
    ] {
        assert_eq!(archive.count_runs(&filter, max).await.unwrap(), expected);
    }
    let none = RunFilter { created: TimeRange { from: None, until: Some(BEGIN) }, ..filter };
    assert_eq!(archive.count_runs(&none, None).await.unwrap(), RunCount { runs: 0, more: false });
}

async fn a_run_shows_what_it_is_found_by<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    filled(&*archive).await;
    let child = archive.run(run_id(4)).await.unwrap().unwrap();
    assert_eq!((child.parent, child.parent_node.as_deref()), (Some(run_id(0)), Some("each")));
    assert_eq!(child.labels, labels(&[("team", "search")]));
    let scheduled = archive.run(run_id(2)).await.unwrap().unwrap();
    assert_eq!(scheduled.schedule.as_deref(), Some("nightly"));
    assert_eq!(archive.run(run_id(3)).await.unwrap().unwrap().labels, labels(&[]));
}

async fn a_run_that_starts_over_has_no_error<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    history.put(&*archive, [accepted(), failed_at("fetch", "timeout", "late")]).await;
    assert_eq!(found(&*archive, "code=timeout").await, [0]);
    history.put(&*archive, [retried()]).await;
    assert!(found(&*archive, "code=timeout").await.is_empty());
    assert!(found(&*archive, "node=fetch").await.is_empty());
}
