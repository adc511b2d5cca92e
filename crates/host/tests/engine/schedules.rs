//! Schedules: one start a tick, overlap, catch-up, pause, backfill, starts by hand, and their history.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchyard_api::StartOutcomeName::{Failed, Skipped, Started};
use switchyard_core::run::RunStatus;
use switchyard_core::schedule::{CatchUp, Overlap, Schedule};
use switchyard_core::{Payload, Timestamp};
use switchyard_runtime::{Submission, ids};
use switchyard_store::ManualClock;

use crate::support::{RunViewExt, TestEngine, program, tester};

const HOUR: Duration = Duration::from_secs(3600);

fn hourly() -> Schedule {
    Schedule {
        name: "hourly".into(),
        workflow: "report".into(),
        version: None,
        input: Payload::from_value(&json!({"n": 1})),
        cron: "0 * * * *".into(),
        time_zone: "Europe/Berlin".into(),
        jitter: Duration::ZERO,
        overlap: Overlap::Skip,
        catch_up: CatchUp::Last,
        paused: false,
        labels: Default::default(),
    }
}

/// An engine without a worker, so that the test makes every pass itself. It is five minutes to the hour.
async fn fixture(workflow: &str) -> (TestEngine, ManualClock) {
    let clock = ManualClock::starting_at(Timestamp::from_millis(1_767_225_300_000));
    let fixture = TestEngine::idle(|options| options.clock = Arc::new(clock.clone())).await;
    fixture.engine().register_workflow(&tester(), &ids::operation_id(), &program(workflow)).await.unwrap();
    (fixture, clock)
}

const QUICK: &str = "name: report\nnodes:\n  a: { type: transform, value: '${{ input.n }}' }\n";

#[tokio::test]
async fn a_tick_is_started_once_by_however_many_servers() {
    let (fixture, clock) = fixture(QUICK).await;
    fixture.engine().put_schedule(&tester(), &ids::operation_id(), hourly()).await.unwrap();
    assert!(fixture.engine().start_due().await.unwrap().started.is_empty());
    clock.advance(HOUR);
    let before = fixture.engine().history().schedule("hourly").await.unwrap();
    let first = fixture.engine().start_due().await.unwrap().started;
    assert_eq!(first.len(), 1);
    assert!(fixture.engine().start_due().await.unwrap().started.is_empty());
    // A server that crashed after the start and before recording it sees the old schedule.
    fixture.embedded.services().archive.put_schedule(before).await.unwrap();
    assert_eq!(fixture.engine().start_due().await.unwrap().started, first, "the same tick is the same run");
    fixture.embedded.work();
    assert_eq!(fixture.end(first[0]).await.output(), json!(1));
}

#[tokio::test]
async fn a_run_that_takes_long_meets_the_next_tick() {
    for (overlap, expected) in [(Overlap::Skip, 1), (Overlap::Queue, 2), (Overlap::Allow, 2)] {
        let (fixture, clock) = fixture(QUICK).await;
        fixture
            .engine()
            .put_schedule(&tester(), &ids::operation_id(), Schedule { overlap, ..hourly() })
            .await
            .unwrap();
        let mut started = Vec::new();
        for _ in 0..2 {
            clock.advance(HOUR);
            started.extend(fixture.engine().start_due().await.unwrap().started);
        }
        assert_eq!(started.len(), expected, "{overlap:?}");
        if overlap == Overlap::Queue {
            assert_eq!(fixture.view(started[1]).await.status(), RunStatus::Queued);
        }
    }
}

#[tokio::test]
async fn a_paused_schedule_starts_nothing_and_makes_up_for_nothing() {
    let (fixture, clock) = fixture(QUICK).await;
    fixture
        .engine()
        .put_schedule(&tester(), &ids::operation_id(), Schedule { catch_up: CatchUp::All, ..hourly() })
        .await
        .unwrap();
    fixture.engine().pause_schedule(&tester(), &ids::operation_id(), "hourly", true).await.unwrap();
    clock.advance(HOUR * 5);
    assert!(fixture.engine().start_due().await.unwrap().started.is_empty());
    fixture.engine().pause_schedule(&tester(), &ids::operation_id(), "hourly", false).await.unwrap();
    assert!(fixture.engine().start_due().await.unwrap().started.is_empty());
    clock.advance(HOUR);
    assert_eq!(fixture.engine().start_due().await.unwrap().started.len(), 1);
}

#[tokio::test]
async fn a_backfill_starts_what_was_not_started() {
    let (fixture, clock) = fixture(QUICK).await;
    fixture
        .engine()
        .put_schedule(&tester(), &ids::operation_id(), Schedule { overlap: Overlap::Allow, ..hourly() })
        .await
        .unwrap();
    clock.advance(HOUR);
    let regular = fixture.engine().start_due().await.unwrap().started[0];
    let now = Timestamp::from_millis(1_767_225_300_000).plus(HOUR);
    let filled = fixture
        .engine()
        .backfill(
            &tester(),
            &ids::operation_id(),
            "hourly",
            Timestamp::from_millis(1_767_225_300_000 - 7_200_000),
            now,
        )
        .await;
    let filled = filled.unwrap();
    assert_eq!((filled.runs.len(), filled.next), (3, None));
    assert_eq!((filled.runs[2].run_id, filled.runs[2].started), (regular, false));
    assert!(filled.runs[0].started);
}

#[tokio::test]
async fn expressions_see_the_tick_also_in_runs_below() {
    let workflow = "name: report
nodes:
  each: { type: map, items: [1], nodes: { a: { type: transform, value: '${{ run.scheduled_at }}' } } }
output: { tick: '${{ run.scheduled_at }}', whole: '${{ run }}', below: '${{ nodes.each.output[0] }}' }
";
    let (fixture, clock) = fixture(workflow).await;
    fixture.engine().put_schedule(&tester(), &ids::operation_id(), hourly()).await.unwrap();
    clock.advance(HOUR);
    let run = fixture.engine().start_due().await.unwrap().started[0];
    let by_hand = fixture.engine().submit(&tester(), Submission::new(program(workflow), json!({}))).await;
    fixture.embedded.work();
    let output = fixture.end(run).await.output();
    assert_eq!(output["tick"], "2026-01-01T00:00:00.000Z");
    assert_eq!((&output["whole"]["scheduled_at"], &output["below"]), (&output["tick"], &output["tick"]));
    assert_eq!(fixture.end(by_hand.unwrap().run()).await.output()["tick"], json!(null));
}

#[tokio::test]
async fn a_schedule_is_started_now_once_for_its_operation() {
    let (fixture, _) = fixture(QUICK).await;
    fixture.engine().put_schedule(&tester(), &ids::operation_id(), hourly()).await.unwrap();
    fixture.engine().pause_schedule(&tester(), &ids::operation_id(), "hourly", true).await.unwrap();
    let operation = ids::operation_id();
    let first = fixture.engine().run_schedule(&tester(), &operation, "hourly").await.unwrap();
    assert_eq!(fixture.engine().run_schedule(&tester(), &operation, "hourly").await.unwrap(), first);
    let second = fixture.engine().run_schedule(&tester(), &ids::operation_id(), "hourly").await.unwrap();
    assert_ne!(first, second);
    let record = fixture.engine().history().schedule("hourly").await.unwrap();
    assert_eq!(record.last_run, Some(second));
    let unknown = fixture.engine().run_schedule(&tester(), &ids::operation_id(), "other").await.unwrap_err();
    assert!(unknown.to_string().contains("no schedule `other`"), "{unknown}");
    fixture.embedded.work();
    assert_eq!(fixture.end(second).await.output(), json!(1));
}

#[tokio::test]
async fn a_start_that_fails_or_is_left_out_is_in_the_history() {
    let (fixture, clock) = fixture(QUICK).await;
    let engine = fixture.engine();
    engine.put_schedule(&tester(), &ids::operation_id(), hourly()).await.unwrap();
    clock.advance(HOUR);
    let run = engine.start_due().await.unwrap().started[0];
    clock.advance(HOUR);
    assert_eq!(engine.start_due().await.unwrap().started, [], "the first is still under way");
    let strict = "name: report\ninput: { type: object, required: [day] }\nnodes:\n  a: { type: transform, value: 1 }\n";
    engine.register_workflow(&tester(), &ids::operation_id(), &program(strict)).await.unwrap();
    fixture.embedded.work();
    fixture.end(run).await;
    clock.advance(HOUR);
    for _ in 0..2 {
        assert_eq!(engine.start_due().await.unwrap().failed.len(), 1);
    }
    let now = engine.clock().now();
    let shown = engine.history().schedule_shown("hourly", now, 1, 10).await.unwrap();
    let starts = shown.starts.unwrap();
    assert_eq!(starts.iter().map(|start| start.outcome).collect::<Vec<_>>(), [Failed, Skipped, Started]);
    assert!(starts[0].error.as_deref().unwrap().contains("day"), "{starts:?}");
    assert!(starts[0].tries >= 2 && starts[2].run_id == Some(run), "{starts:?}");
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let (fixture, _) = fixture(QUICK).await;
    for (schedule, expected) in [
        (Schedule { cron: "every hour".into(), ..hourly() }, "5 fields"),
        (Schedule { time_zone: "Mars/Olympus".into(), ..hourly() }, "Mars/Olympus"),
        (Schedule { workflow: "nothing".into(), ..hourly() }, "no workflow `nothing`"),
        (Schedule { name: "a b".into(), ..hourly() }, "not a name"),
    ] {
        let refused = fixture
            .engine()
            .put_schedule(&tester(), &ids::operation_id(), schedule)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    assert!(fixture.engine().history().schedules().await.unwrap().is_empty());
}
