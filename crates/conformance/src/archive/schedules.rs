//! Schedules: stored, advanced by one of many processes, with the outcomes of their ticks.

use futures::future::join_all;
use switchyard_core::schedule::Schedule;
use switchyard_store::{STARTS_KEPT, ScheduleRecord, ScheduleStart, StartOutcome};

use crate::archive::Backend;
use crate::archive::fixtures::{at, run_id};

pub async fn all<B: Backend>(backend: &B) {
    a_schedule_is_kept_replaced_and_removed(backend).await;
    one_of_many_moves_it_on(backend).await;
    what_became_of_a_tick_is_noted(backend).await;
    the_newest_starts_stay_until_the_schedule_goes(backend).await;
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
    assert!(!archive.advance_schedule("unknown", None, None, None).await.unwrap());
    let last_run = archive.schedule("a").await.unwrap().unwrap().last_run;
    assert!(archive.advance_schedule("a", Some(at(2)), None, None).await.unwrap());
    let ended = archive.schedule("a").await.unwrap().unwrap();
    assert_eq!((ended.next_at, ended.last_run), (None, last_run), "a tick that was left out keeps the run");
}

fn start(tick: u64, outcome: StartOutcome) -> ScheduleStart {
    ScheduleStart { tick: at(tick), at: at(tick + 1), tries: 1, by: None, outcome }
}

async fn what_became_of_a_tick_is_noted<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let failed = start(1, StartOutcome::Failed("no workflow `a\0b`".into()));
    archive.note_start("a", failed.clone()).await.unwrap();
    let again = ScheduleStart { at: at(9), ..failed };
    archive.note_start("a", again.clone()).await.unwrap();
    let by_hand = ScheduleStart { by: Some("ada".into()), ..start(3, StartOutcome::Started(run_id(3))) };
    archive.note_start("a", by_hand.clone()).await.unwrap();
    archive.note_start("a", start(2, StartOutcome::Skipped)).await.unwrap();
    archive.note_start("b", start(4, StartOutcome::Skipped)).await.unwrap();
    drop(archive);
    let archive = backend.open(&location).await;
    let twice = ScheduleStart { tries: 2, ..again };
    let expected = [by_hand.clone(), start(2, StartOutcome::Skipped), twice];
    assert_eq!(archive.schedule_starts("a", 10).await.unwrap(), expected, "newest tick first");
    assert_eq!(archive.schedule_starts("a", 1).await.unwrap(), expected[..1]);
    let started = ScheduleStart { tries: 3, ..start(1, StartOutcome::Started(run_id(1))) };
    archive.note_start("a", started.clone()).await.unwrap();
    archive.note_start("a", start(1, StartOutcome::Failed("late".into()))).await.unwrap();
    let noted = archive.schedule_starts("a", 10).await.unwrap().remove(2);
    assert_eq!((noted.outcome, noted.tries), (started.outcome, 3), "a start is not taken back");
}

async fn the_newest_starts_stay_until_the_schedule_goes<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    archive.put_schedule(record("a", "0 1 * * *")).await.unwrap();
    let count = STARTS_KEPT as u64 + 5;
    for tick in 1..=count {
        archive.note_start("a", start(tick, StartOutcome::Skipped)).await.unwrap();
    }
    let kept = archive.schedule_starts("a", 1_000).await.unwrap();
    assert_eq!((kept.len(), kept[0].tick, kept[STARTS_KEPT - 1].tick), (STARTS_KEPT, at(count), at(6)));
    archive.remove_schedule("a").await.unwrap();
    assert_eq!(archive.schedule_starts("a", 1_000).await.unwrap(), []);
}
