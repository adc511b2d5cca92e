//! Schedules, and who may move them on.

use futures::future::join_all;
use switchyard_core::schedule::Schedule;
use switchyard_store::ScheduleRecord;

use crate::archive::Backend;
use crate::archive::fixtures::{at, run_id};

pub async fn all<B: Backend>(backend: &B) {
    a_schedule_is_kept_replaced_and_removed(backend).await;
    one_of_many_moves_it_on(backend).await;
}

fn record(name: &str, cron: &str) -> ScheduleRecord {
    let schedule: Schedule = serde_json::from_value(serde_json::json!({
        "name": name, "workflow": "report", "input": {"json": {"n": 1}}, "cron": cron, "time_zone": "UTC",
    }))
    .expect("a schedule");
    ScheduleRecord { schedule, next_at: Some(at(1)), last_run: None }
}

async fn a_schedule_is_kept_replaced_and_removed<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let (first, other) = (record("b", "0 1 * * *"), record("a", "0 2 * * *"));
    archive.put_schedule(first.clone()).await.unwrap();
    archive.put_schedule(other.clone()).await.unwrap();
    drop(archive);
    let archive = backend.open(&location).await;
    assert_eq!(archive.schedules().await.unwrap(), [other, first]);
    let changed = ScheduleRecord { next_at: None, last_run: Some(run_id(7)), ..record("b", "0 3 * * *") };
    archive.put_schedule(changed.clone()).await.unwrap();
    assert_eq!(archive.schedule("b").await.unwrap(), Some(changed));
    assert!(archive.remove_schedule("b").await.unwrap());
    assert!(!archive.remove_schedule("b").await.unwrap());
    assert_eq!(archive.schedule("b").await.unwrap(), None);
}

async fn one_of_many_moves_it_on<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    archive.put_schedule(record("a", "0 1 * * *")).await.unwrap();
    let movers = (0..10).map(|n| archive.advance_schedule("a", Some(at(1)), Some(at(2)), Some(run_id(n))));
    let moved = join_all(movers).await.into_iter().filter(|moved| *moved.as_ref().unwrap()).count();
    assert_eq!(moved, 1);
    assert!(!archive.advance_schedule("nobody", None, None, None).await.unwrap());
    let last_run = archive.schedule("a").await.unwrap().unwrap().last_run;
    assert!(archive.advance_schedule("a", Some(at(2)), None, None).await.unwrap());
    let ended = archive.schedule("a").await.unwrap().unwrap();
    assert_eq!((ended.next_at, ended.last_run), (None, last_run), "a tick that was left out keeps the run");
}
