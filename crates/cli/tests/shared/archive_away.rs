//! Postgres goes away.

use crate::yard::{Yard, assert_try_later};

#[tokio::test]
async fn runs_go_on_without_the_archive_and_are_archived_when_it_is_back() {
    let mut yard = Yard::start();
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(yard.submitted().await);
    }
    for run in &runs {
        yard.until_at(run, "first", "waiting").await;
    }

    yard.postgres.stop();
    assert_try_later(yard.submit().await, "store_unavailable").await;
    assert_try_later(yard.get("/readyz").await, "archive_unavailable").await;
    for run in &runs {
        yard.signal(run, "first").await;
    }
    // Between the gates there is a step that a worker has to execute.
    for run in &runs {
        yard.until_at(run, "second", "waiting").await;
    }
    for run in &runs[..3] {
        yard.signal(run, "second").await;
    }
    assert!(yard.metric("switchyard_archive_pending_events").await.unwrap() > 0.0);
    yard.assert_all_run();

    yard.postgres.start_again();
    yard.until_ready().await;
    for run in &runs[3..] {
        yard.signal(run, "second").await;
    }
    let late = yard.submitted().await;
    yard.signal(&late, "first").await;
    yard.signal(&late, "second").await;
    runs.push(late);
    for run in &runs {
        yard.until(run, |view| view["status"] == "succeeded").await;
        yard.assert_whole(run).await;
    }
    yard.assert_all_run();
}
