//! Deletion of runs: removed rows, kept rows, and refusals.

use std::time::Duration;

use switchyard_core::run::{Accepted, EndStatus, EventKind, ParentLink, RunStatus};
use switchyard_core::{CasRef, Hash, Payload, RunId};
use switchyard_store::{Archive, DeleteRequest, Deletion, Mutation, RunFilter, Tombstone};

use super::Backend;
use super::fixtures::*;

pub async fn all<B: Backend>(backend: &B) {
    a_run_goes_with_its_children_and_leaves_a_tombstone(backend).await;
    what_is_under_way_is_kept(backend).await;
    others_keep_their_payloads(backend).await;
}

async fn delete(archive: &dyn Archive, run: RunId) -> Deletion {
    let request = DeleteRequest { run, at: at(50), by: "ada".into(), reason: "asked for".into() };
    archive.mutate(Mutation::DeleteRun(Box::new(request)), None).await.unwrap().deletion().unwrap()
}

fn child_of(parent: RunId) -> EventKind {
    let parent = Some(ParentLink { run: parent, node: "each".into(), index: 0, depth: 1 });
    accepted_as(Accepted { parent, labels: labels(&[("team", "search")]), ..acceptance() })
}

fn tombstone_of(run: RunId, children: u64) -> Tombstone {
    Tombstone {
        run_id: run,
        workflow: "enrich".into(),
        status: RunStatus::Succeeded,
        deleted_at: at(50),
        deleted_by: "ada".into(),
        reason: "asked for".into(),
        children,
    }
}

async fn a_run_goes_with_its_children_and_leaves_a_tombstone<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let end = || ended(EndStatus::Succeeded);
    let first = accepted_as(Accepted { labels: labels(&[("team", "search")]), ..acceptance() });
    for (n, kinds) in [
        (0, vec![first, end()]),
        (1, vec![child_of(run_id(0)), end()]),
        (2, vec![child_of(run_id(1)), end()]),
        (3, vec![accepted(), end()]),
    ] {
        History::of(run_id(n)).put(&*archive, kinds).await;
    }
    assert_eq!(delete(&*archive, run_id(1)).await, Deletion::ChildOf(run_id(0)));
    assert_eq!(delete(&*archive, run_id(0)).await, Deletion::Deleted(tombstone_of(run_id(0), 2)));
    for n in 0..3 {
        assert_eq!(archive.run(run_id(n)).await.unwrap(), None);
        assert!(archive.events(run_id(n), 0, 10).await.unwrap().is_empty());
    }
    let labelled = RunFilter {
        include_children: true,
        limit: 10,
        labels: labels(&[("team", "search")]),
        ..RunFilter::default()
    };
    assert!(archive.runs(&labelled).await.unwrap().items.is_empty());
    assert!(archive.run(run_id(3)).await.unwrap().is_some());
    assert_eq!(delete(&*archive, run_id(0)).await, Deletion::Before(tombstone_of(run_id(0), 2)));
    assert_eq!(delete(&*archive, run_id(9)).await, Deletion::Unknown);
    assert_eq!(archive.tombstone(run_id(0)).await.unwrap(), Some(tombstone_of(run_id(0), 2)));
    assert_eq!(archive.tombstone(run_id(3)).await.unwrap(), None);
    assert_eq!(delete(&*archive, run_id(3)).await, Deletion::Deleted(tombstone_of(run_id(3), 0)));
    assert_eq!(
        archive.tombstones(10).await.unwrap(),
        [tombstone_of(run_id(3), 0), tombstone_of(run_id(0), 2)]
    );
    assert_eq!(archive.tombstones(1).await.unwrap().len(), 1);
}

async fn what_is_under_way_is_kept<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut parent = History::of(run_id(0));
    let mut child = History::of(run_id(1));
    parent.put(&*archive, [accepted()]).await;
    child.put(&*archive, [child_of(run_id(0))]).await;
    assert_eq!(delete(&*archive, run_id(0)).await, Deletion::UnderWay);
    parent.put(&*archive, [ended(EndStatus::Succeeded)]).await;
    assert_eq!(delete(&*archive, run_id(0)).await, Deletion::UnderWay, "its child goes on");
    assert_eq!(archive.events(run_id(1), 0, 10).await.unwrap().len(), 1);
    child.put(&*archive, [ended(EndStatus::Succeeded)]).await;
    assert!(matches!(delete(&*archive, run_id(0)).await, Deletion::Deleted(_)));
}

async fn others_keep_their_payloads<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let large = |name: &str| Payload::Cas(CasRef { hash: Hash::of(name.as_bytes()), bytes: 70_000 });
    let with_input = |name: &str| accepted_as(Accepted { input: large(name), ..acceptance() });
    let end = || ended(EndStatus::Succeeded);
    History::of(run_id(0)).put(&*archive, [with_input("shared"), end()]).await;
    History::of(run_id(1)).put(&*archive, [with_input("shared"), end()]).await;
    History::of(run_id(2)).put(&*archive, [with_input("own"), end()]).await;
    delete(&*archive, run_id(0)).await;
    delete(&*archive, run_id(2)).await;
    let hashes = ["shared", "own"].map(|name| Hash::of(name.as_bytes()));
    let long_after = at(50).plus(Duration::from_secs(1));
    let held = archive.held_payloads(&hashes, long_after).await.unwrap();
    assert_eq!(held, [hashes[0]].into(), "what nothing mentions any more is let go");
}
