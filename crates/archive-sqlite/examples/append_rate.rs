//! Measures the append rate of the archive, and the latency of a single append.
//!
//!     cargo run --release -p switchyard-archive-sqlite --example append_rate [FOLDER]
//!
//! Each run is accepted, goes through ten steps of two events, and ends. A step's two events are one append that is
//! awaited before the next, as an engine with durable acknowledgement does it. Time is wall time, on this disk.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for a terminal")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use switchyard_archive_sqlite::{DataFolder, SqliteArchive};
use switchyard_core::run::{Accepted, EndStatus, Event, EventKind};
use switchyard_core::{Hash, Payload, RunId, Timestamp};
use switchyard_store::Journal;

const STEPS: u64 = 10;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let temporary = tempfile::tempdir_in(".").unwrap();
    let folder = std::env::args_os().nth(1).map_or(temporary.path().to_owned(), PathBuf::from);
    let archive = DataFolder::open(folder).unwrap().archive().unwrap();

    lone_appends(&archive, 2_000).await;
    bulk(&archive, 20_000).await;
    for (runs, in_flight) in [(2_000, 1), (20_000, 50), (40_000, 500), (60_000, 5_000)] {
        chains(&archive, runs, in_flight).await;
    }
}

/// Appends one event at a time on an idle archive: about one disk sync each.
async fn lone_appends(archive: &SqliteArchive, count: u64) {
    let mut waits = Histogram::<u64>::new(3).unwrap();
    for _ in 0..count {
        let began = Instant::now();
        archive.append(vec![accepted(new_run())]).await.unwrap();
        waits.record(began.elapsed().as_micros() as u64).unwrap();
    }
    println!("lone append          {}", spread(&waits));
}

/// Appends whole histories without waiting, which measures the writer itself.
async fn bulk(archive: &SqliteArchive, runs: u64) {
    let histories: Vec<_> = (0..runs).map(|_| history(new_run())).collect();
    let events: usize = histories.iter().map(Vec::len).sum();
    let began = Instant::now();
    let acks: Vec<_> = histories.into_iter().map(|events| archive.append(events)).collect();
    for ack in acks {
        ack.await.unwrap();
    }
    println!("bulk                 {:>9.0} events/s", per_second(events as u64, began.elapsed()));
}

/// Runs that wait for every step, `in_flight` at a time.
async fn chains(archive: &SqliteArchive, runs: u64, in_flight: u64) {
    let began = Instant::now();
    let tasks: Vec<_> = (0..in_flight)
        .map(|_| {
            let archive = archive.clone();
            tokio::spawn(async move {
                let mut waits = Histogram::<u64>::new(3).unwrap();
                for _ in 0..runs / in_flight {
                    for step in history(new_run()).chunks(2) {
                        let asked = Instant::now();
                        archive.append(step.to_vec()).await.unwrap();
                        waits.record(asked.elapsed().as_micros() as u64).unwrap();
                    }
                }
                waits
            })
        })
        .collect();
    let mut waits = Histogram::<u64>::new(3).unwrap();
    for task in tasks {
        waits.add(task.await.unwrap()).unwrap();
    }
    let steps = per_second(runs * STEPS, began.elapsed());
    println!("chains, {in_flight:>4} in flight {steps:>9.0} steps/s   append {}", spread(&waits));
}

fn spread(waits: &Histogram<u64>) -> String {
    let ms = |value: u64| value as f64 / 1000.0;
    format!(
        "p50 {:.2} ms, p99 {:.2} ms, max {:.1} ms",
        ms(waits.value_at_quantile(0.5)),
        ms(waits.value_at_quantile(0.99)),
        ms(waits.max())
    )
}

fn per_second(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// Ids grow with time and are random within a millisecond, as in production: fifty runs per millisecond here.
fn new_run() -> RunId {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let at = Timestamp::from_millis(1_700_000_000_000 + (n / 50) as i64);
    RunId::new(at, n.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0)
}

fn accepted(run: RunId) -> Event {
    event(run, 1, EventKind::RunAccepted(Box::new(acceptance())))
}

fn acceptance() -> Accepted {
    let input = Payload::from_value(&serde_json::json!({"company": "Switchyard Ltd", "country": "DE"}));
    Accepted::plain("enrich-lead".into(), Hash([7; 32]), input)
}

fn history(run: RunId) -> Vec<Event> {
    let output = Payload::from_value(&serde_json::json!({"status": 200, "body": {"id": 17, "name": "Ada"}}));
    let mut kinds = vec![EventKind::RunAccepted(Box::new(acceptance()))];
    for step in 0..STEPS {
        let node: Arc<str> = format!("step_{step}").into();
        kinds.push(EventKind::NodeStarted {
            node: node.clone(),
            attempt: 1,
            claim: 1,
            worker: "worker-1".into(),
        });
        kinds.push(EventKind::NodeSucceeded { node, output: output.clone(), cached: false });
    }
    kinds.push(EventKind::RunEnded { status: EndStatus::Succeeded, output, error: None });
    kinds.into_iter().zip(1..).map(|(kind, seq)| event(run, seq, kind)).collect()
}

fn event(run: RunId, seq: u64, kind: EventKind) -> Event {
    Event { run, seq, at: Timestamp::from_millis(1_700_000_000_000 + seq as i64), kind }
}
