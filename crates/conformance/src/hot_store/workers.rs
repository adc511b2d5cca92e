//! Workers that report: which are alive, and what each serves.

use std::time::Duration;

use switchyard_store::{Clock, Worker, WorkerKind};

use crate::hot_store::{Backend, Fixture};

const HOLDS: Duration = Duration::from_secs(30);

pub async fn all(backend: &dyn Backend) {
    a_worker_that_reports_is_listed_with_what_it_serves(&backend.open().await).await;
    a_worker_that_falls_silent_is_not_alive(&backend.open().await).await;
    a_worker_that_signs_off_is_not_listed(&backend.open().await).await;
}

fn worker(fixture: &Fixture, name: &str, kind: WorkerKind) -> Worker {
    let now = fixture.clock.now();
    Worker {
        name: name.into(),
        kind,
        queues: ["http".into(), "function:enrich@2".into(), "function:mail.*".into()].into(),
        slots: 4,
        busy: 1,
        version: "1.2".into(),
        since: now,
        last_seen: now,
        alive: true,
    }
}

async fn a_worker_that_reports_is_listed_with_what_it_serves(fixture: &Fixture) {
    let (b, a) = (worker(fixture, "b", WorkerKind::Process), worker(fixture, "a", WorkerKind::Http));
    for one in [&b, &a] {
        fixture.hot.report_worker(one, HOLDS).await.expect("a report is taken");
    }
    let listed = fixture.hot.workers().await.expect("workers are listed");
    assert_eq!(listed, [a, b]);
    let serves = ["http", "function:enrich@2", "function:mail.send"].map(|queue| listed[0].serves(queue));
    assert_eq!(serves, [true; 3]);
    assert!(!listed[0].serves("function:enrich") && !listed[0].serves("function"));
}

async fn a_worker_that_falls_silent_is_not_alive(fixture: &Fixture) {
    let one = worker(fixture, "one", WorkerKind::Http);
    fixture.hot.report_worker(&one, HOLDS).await.expect("a report is taken");
    fixture.clock.advance(HOLDS + Duration::from_millis(1));
    let listed = fixture.hot.workers().await.expect("workers are listed");
    assert_eq!(listed, [Worker { alive: false, ..one.clone() }]);
    assert!(!listed[0].serves("http"));
    let later = Worker { busy: 2, ..one };
    fixture.hot.report_worker(&later, HOLDS).await.expect("a report is taken");
    let listed = fixture.hot.workers().await.expect("workers are listed");
    assert_eq!((listed[0].alive, listed[0].busy, listed[0].since), (true, 2, later.since));
    assert!(listed[0].last_seen > later.last_seen);
}

async fn a_worker_that_signs_off_is_not_listed(fixture: &Fixture) {
    let one = worker(fixture, "one", WorkerKind::Process);
    fixture.hot.report_worker(&one, HOLDS).await.expect("a report is taken");
    fixture.hot.sign_off("one").await.expect("taken");
    assert_eq!(fixture.hot.workers().await.expect("workers are listed"), []);
}
