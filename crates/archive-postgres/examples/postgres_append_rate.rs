//! Measures the append rate of the archive, and the rate of plain `INSERT … COMMIT` on the same server.
//!
//!     cargo run --release -p switchyard-archive-postgres --example postgres_append_rate
//!
//! It starts its own server, which syncs every commit to the disk. Each run is accepted, goes through ten steps of
//! two events, and ends; a step's two events are one append that is awaited before the next. The plain rate writes
//! the same rows of `events`, two per transaction, on as many connections as there are runs in flight.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for a terminal")]

use std::time::{Duration, Instant};

use switchyard_archive_postgres::{PostgresArchive, Target, migrate};
use switchyard_conformance::archive::fixtures::{
    History, accepted, ended, node_started, node_succeeded, run_id,
};
use switchyard_core::run::{EndStatus, Event};
use switchyard_store::Journal;
use switchyard_test_servers::postgres::{Postgres, Sync};
use tokio_postgres::NoTls;

const FOR: Duration = Duration::from_secs(4);

#[tokio::main(worker_threads = 2)]
async fn main() {
    let server = Postgres::start(Sync::On);
    let target: Target = server.url().parse().unwrap();
    migrate(&target).await.unwrap();
    let archive = PostgresArchive::open(target).await.unwrap();
    let mut next_run = 0..;
    for in_flight in [1, 16, 64] {
        let plain = plain(&server.url(), in_flight, &mut next_run).await;
        let grouped = grouped(&archive, in_flight, &mut next_run).await;
        println!(
            "{in_flight:>4} in flight   plain {plain:>7.0} transactions/s   archive {grouped:>7.0} appends/s   {:.1} x",
            grouped / plain
        );
    }
    let grouped = grouped(&archive, 1_000, &mut next_run).await;
    println!("1000 in flight   archive {grouped:>7.0} appends/s ({:.0} events/s)", 2.0 * grouped);
    println!("bulk             archive {:>7.0} events/s", bulk(&archive, &mut next_run).await);
}

type Runs = std::ops::RangeFrom<u32>;

fn history(n: u32) -> Vec<Event> {
    let steps = (0..10).flat_map(|step| {
        let node = format!("step_{step}");
        [node_started(&node), node_succeeded(&node)]
    });
    let kinds = std::iter::once(accepted()).chain(steps).chain([ended(EndStatus::Succeeded)]);
    History::of(run_id(n)).all(kinds)
}

/// Every lane works on its own runs until the time is over; returns the appends per second.
async fn grouped(archive: &PostgresArchive, in_flight: u32, runs: &mut Runs) -> f64 {
    let began = Instant::now();
    let bands: Vec<_> = (0..in_flight)
        .map(|_| {
            let (archive, first) = (archive.clone(), runs.nth(9_999).unwrap());
            tokio::spawn(async move {
                let mut appends = 0;
                for n in first.. {
                    for step in history(n).chunks(2) {
                        archive.append(step.to_vec()).await.unwrap();
                        appends += 1;
                    }
                    if began.elapsed() > FOR {
                        break;
                    }
                }
                appends
            })
        })
        .collect();
    let mut appends = 0;
    for lane in bands {
        appends += lane.await.unwrap();
    }
    f64::from(appends) / began.elapsed().as_secs_f64()
}

async fn plain(url: &str, in_flight: u32, runs: &mut Runs) -> f64 {
    let began = Instant::now();
    let bands: Vec<_> = (0..in_flight)
        .map(|_| {
            let (url, first) = (url.to_owned(), runs.nth(9_999).unwrap());
            tokio::spawn(async move {
                let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
                tokio::spawn(connection);
                let sql = "INSERT INTO switchyard.events (run, seq, at, kind, body)
                    VALUES ($1, $2, $3, $4, $5), ($1, $2 + 1, $3, $4, $5)";
                let insert = client.prepare(sql).await.unwrap();
                let mut transactions = 0;
                for n in first.. {
                    for step in history(n).chunks(2) {
                        let (run, body) =
                            (step[0].run.to_string(), serde_json::to_string(&step[0].kind).unwrap());
                        let (seq, at) = (step[0].seq.cast_signed(), step[0].at.as_millis());
                        client
                            .execute(&insert, &[&run, &seq, &at, &step[0].kind.name(), &body])
                            .await
                            .unwrap();
                        transactions += 1;
                    }
                    if began.elapsed() > FOR {
                        break;
                    }
                }
                transactions
            })
        })
        .collect();
    let mut transactions = 0;
    for lane in bands {
        transactions += lane.await.unwrap();
    }
    f64::from(transactions) / began.elapsed().as_secs_f64()
}

/// Appends whole histories without waiting, which measures the writer itself.
async fn bulk(archive: &PostgresArchive, runs: &mut Runs) -> f64 {
    let histories: Vec<_> = runs.take(5_000).map(history).collect();
    let events: usize = histories.iter().map(Vec::len).sum();
    let began = Instant::now();
    let acks: Vec<_> = histories.into_iter().map(|events| archive.append(events)).collect();
    for ack in acks {
        ack.await.unwrap();
    }
    events as f64 / began.elapsed().as_secs_f64()
}
