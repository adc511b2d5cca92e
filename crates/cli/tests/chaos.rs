//! Kills, pauses and disconnects processes that share a Redis and a Postgres, and wipes their Redis: every accepted run
//! ends, and its history in the archive satisfies the invariants.
//!
//! The seed is printed; `SWITCHYARD_CHAOS_SEED` repeats it, and `cargo xtask chaos` takes any length.

use std::time::Duration;

use switchyard_chaos::{Plan, run};

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "the seed is the bug report")]
async fn nothing_accepted_is_lost() {
    let plan = Plan {
        binary: env!("CARGO_BIN_EXE_switchyard").into(),
        seed: seed(),
        trouble: Duration::from_secs(40),
        settle_timeout: Duration::from_secs(60),
    };
    println!("SWITCHYARD_CHAOS_SEED={}", plan.seed);
    let report = run(&plan).await.unwrap();
    println!("{report}");
    assert!(report.runs > 0, "no run was accepted");
    assert_eq!(report.faults.len(), switchyard_chaos::FAULT_KINDS, "every fault was made: {report}");
    let unseen: Vec<_> =
        report.faults.iter().filter(|(_, made)| made.unit.is_some() && made.seen == 0).collect();
    assert!(unseen.is_empty(), "no process was affected by {unseen:?}: {report}");
    assert!(
        report.decisions.values().any(|answers| answers.acknowledged > 0),
        "nothing was decided: {report}"
    );
    assert!(report.violations.is_empty(), "{report}");
}

#[expect(clippy::disallowed_methods, reason = "a test is told its seed in no other way")]
fn seed() -> u64 {
    std::env::var("SWITCHYARD_CHAOS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random)
}
