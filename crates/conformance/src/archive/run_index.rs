//! The row of a run follows from its events, and lists consist of rows.

use switchyard_core::run::{Accepted, EndStatus, EventKind, ParentLink, RunStatus};
use switchyard_core::{Hash, RunId};
use switchyard_store::{RunFilter, RunIndex, RunRecord, Unfinished};

use crate::archive::Backend;
use crate::archive::fixtures::{
    History, acceptance, accepted, accepted_as, at, closing, ended, every_kind, every_wait, node_started,
    paused, resumed, retried, run_error, run_id,
};

pub async fn all<B: Backend>(backend: &B) {
    a_row_says_what_was_accepted(backend).await;
    the_status_follows_the_events(backend).await;
    events_of_nodes_leave_the_status(backend).await;
    an_ended_run_has_its_time_and_error(backend).await;
    a_retried_run_has_neither(backend).await;
    the_list_is_newest_first_in_pages(backend).await;
    the_list_can_be_filtered(backend).await;
    children_are_listed_on_request(backend).await;
    unfinished_is_oldest_first(backend).await;
    parents_whose_children_have_ended(backend).await;
}

async fn a_row_says_what_was_accepted<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    assert_eq!(archive.run(run_id(1)).await.unwrap(), None);

    let parent = Some(ParentLink { run: run_id(0), node: "each".into(), index: 2, depth: 1 });
    let accepted = Accepted { workflow_version: Some(7), parent, ..acceptance() };
    History::of(run_id(1)).put(&*archive, [accepted_as(accepted)]).await;
    let expected = RunRecord {
        run_id: run_id(1),
        workflow: "enrich".into(),
        workflow_version: Some(7),
        definition: Hash::of(b"enrich"),
        status: RunStatus::Running,
        accepted_at: at(1),
        ended_at: None,
        parent: Some(run_id(0)),
        parent_node: Some("each".into()),
        schedule: None,
        labels: Default::default(),
        error: None,
        last_seq: 1,
    };
    assert_eq!(archive.run(run_id(1)).await.unwrap(), Some(expected));
}

async fn the_status_follows_the_events<B: Backend>(backend: &B) {
    use RunStatus::*;
    let queued = || accepted_as(Accepted { queued: true, ..acceptance() });
    let histories: Vec<Vec<(EventKind, RunStatus)>> = vec![
        vec![(accepted(), Running), (ended(EndStatus::Succeeded), Succeeded)],
        vec![
            (queued(), Queued),
            (EventKind::RunStarted {}, Running),
            (paused(), Paused),
            (resumed(), Running),
        ],
        // A paused run keeps its place in the queue, and starting does not end the pause.
        vec![
            (queued(), Queued),
            (paused(), Paused),
            (resumed(), Queued),
            (EventKind::RunStarted {}, Running),
        ],
        vec![
            (queued(), Queued),
            (paused(), Paused),
            (EventKind::RunStarted {}, Paused),
            (resumed(), Running),
        ],
        vec![
            (accepted(), Running),
            (closing(), Closing),
            (EventKind::RunCompensating {}, Compensating),
            (ended(EndStatus::Failed), Failed),
            (retried(), Running),
            (ended(EndStatus::Cancelled), Cancelled),
        ],
        vec![
            (accepted(), Running),
            (paused(), Paused),
            (closing(), Closing),
            (ended(EndStatus::Failed), Failed),
        ],
    ];
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    for (n, steps) in (0..).zip(histories) {
        let mut history = History::of(run_id(n));
        for (kind, expected) in steps {
            let name = kind.name();
            history.put(&*archive, [kind]).await;
            let row = archive.run(history.run).await.unwrap().unwrap();
            assert_eq!(row.status, expected, "history {n} after {name}");
            assert_eq!(row.last_seq, history.seq);
        }
    }
}

async fn events_of_nodes_leave_the_status<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    history.put(&*archive, [accepted()]).await;
    for kind in every_kind().into_iter().chain(every_wait()).filter(|kind| kind.node().is_some()) {
        let name = kind.name();
        history.put(&*archive, [kind]).await;
        let row = archive.run(history.run).await.unwrap().unwrap();
        assert_eq!((row.status, row.ended_at, row.error), (RunStatus::Running, None, None), "after {name}");
    }
}

async fn an_ended_run_has_its_time_and_error<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    for (n, status) in (0..).zip([EndStatus::Succeeded, EndStatus::Failed, EndStatus::Cancelled]) {
        let mut history = History::of(run_id(n));
        history.put(&*archive, [accepted(), ended(status)]).await;
        let row = archive.run(history.run).await.unwrap().unwrap();
        assert_eq!(row.ended_at, Some(at(2)));
        assert_eq!(row.error, (status != EndStatus::Succeeded).then(run_error));
    }
}

async fn a_retried_run_has_neither<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    history.put(&*archive, [accepted(), closing(), ended(EndStatus::Failed)]).await;
    history.put(&*archive, [retried(), node_started("fetch")]).await;
    let row = archive.run(history.run).await.unwrap().unwrap();
    assert_eq!((row.status, row.ended_at, row.error), (RunStatus::Running, None, None));
    assert_eq!(row.last_seq, 5);
    assert_eq!(archive.unfinished().await.unwrap(), [Unfinished { run: history.run, last_seq: 5 }]);
}

async fn the_list_is_newest_first_in_pages<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    // The runs are archived in another order than they were accepted: the id decides.
    for n in [3, 0, 4, 1, 2] {
        History::of(run_id(n)).put(&*archive, [accepted()]).await;
    }
    let mut filter = RunFilter { limit: 2, ..RunFilter::default() };
    let mut pages = Vec::new();
    loop {
        let page = archive.runs(&filter).await.unwrap();
        pages.push(page.items.iter().map(|run| run.run_id).collect::<Vec<_>>());
        let Some(next) = page.next else { break };
        filter.cursor = Some(next);
    }
    assert_eq!(pages, [vec![run_id(4), run_id(3)], vec![run_id(2), run_id(1)], vec![run_id(0)]]);

    let whole = RunFilter { limit: 5, ..RunFilter::default() };
    let page = archive.runs(&whole).await.unwrap();
    assert_eq!((page.items.len(), page.next), (5, None), "a full page with nothing behind it is the last");
}

async fn the_list_can_be_filtered<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    for (n, workflow, status) in [
        (0, "enrich", Some(EndStatus::Failed)),
        (1, "enrich", None),
        (2, "charge", Some(EndStatus::Failed)),
        (3, "charge", None),
        (4, "enrich", Some(EndStatus::Failed)),
    ] {
        let accepted = accepted_as(Accepted { workflow: workflow.into(), ..acceptance() });
        History::of(run_id(n)).put(&*archive, std::iter::once(accepted).chain(status.map(ended))).await;
    }
    let all = RunFilter { limit: 10, ..RunFilter::default() };
    let failed = RunFilter { statuses: vec![RunStatus::Failed], ..all.clone() };
    let enrich = RunFilter { workflow: Some("enrich".into()), ..all.clone() };
    let both = RunFilter { workflow: Some("enrich".into()), ..failed.clone() };
    let later = RunFilter { cursor: Some(run_id(4)), ..both.clone() };
    let nothing = RunFilter { workflow: Some("enric".into()), ..all };
    assert_eq!(listed(&*archive, &failed).await, [run_id(4), run_id(2), run_id(0)]);
    assert_eq!(listed(&*archive, &enrich).await, [run_id(4), run_id(1), run_id(0)]);
    assert_eq!(listed(&*archive, &both).await, [run_id(4), run_id(0)]);
    assert_eq!(listed(&*archive, &later).await, [run_id(0)]);
    assert_eq!(listed(&*archive, &nothing).await, []);
}

async fn children_are_listed_on_request<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    History::of(run_id(0)).put(&*archive, [accepted()]).await;
    let parent = Some(ParentLink { run: run_id(0), node: "each".into(), index: 0, depth: 1 });
    History::of(run_id(1)).put(&*archive, [accepted_as(Accepted { parent, ..acceptance() })]).await;

    let roots = RunFilter { limit: 10, ..RunFilter::default() };
    let with_children = RunFilter { include_children: true, ..roots.clone() };
    assert_eq!(listed(&*archive, &roots).await, [run_id(0)]);
    assert_eq!(listed(&*archive, &with_children).await, [run_id(1), run_id(0)]);
}

async fn unfinished_is_oldest_first<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let queued = accepted_as(Accepted { queued: true, ..acceptance() });
    for (n, kinds) in [
        (5, vec![accepted(), closing(), EventKind::RunCompensating {}]),
        (4, vec![accepted(), closing()]),
        (3, vec![accepted(), paused()]),
        (2, vec![accepted(), ended(EndStatus::Succeeded)]),
        (1, vec![queued]),
        (0, vec![accepted()]),
    ] {
        History::of(run_id(n)).put(&*archive, kinds).await;
    }
    let expected = [(0, 1), (1, 1), (3, 2), (4, 2), (5, 3)];
    let expected = expected.map(|(n, last_seq)| Unfinished { run: run_id(n), last_seq });
    assert_eq!(archive.unfinished().await.unwrap(), expected);
}

async fn parents_whose_children_have_ended<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let child_of = |n| {
        let link = ParentLink { run: run_id(n), node: "all".into(), index: 0, depth: 1 };
        accepted_as(Accepted { parent: Some(link), ..acceptance() })
    };
    let end = || ended(EndStatus::Succeeded);
    for (n, kinds) in [
        (0, vec![accepted()]),
        (1, vec![child_of(0), end()]),
        (2, vec![child_of(0)]),
        (3, vec![accepted()]),
        (4, vec![child_of(3), end()]),
        (5, vec![child_of(3), ended(EndStatus::Failed)]),
        (6, vec![accepted(), end()]),
        (7, vec![child_of(6), end()]),
        (8, vec![accepted()]),
    ] {
        History::of(run_id(n)).put(&*archive, kinds).await;
    }
    assert_eq!(archive.unfinished_with_ended_children().await.unwrap(), [run_id(3)]);
}

async fn listed(archive: &dyn RunIndex, filter: &RunFilter) -> Vec<RunId> {
    archive.runs(filter).await.unwrap().items.iter().map(|run| run.run_id).collect()
}
