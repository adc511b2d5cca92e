//! The fault test: real processes, real faults, and a check that nothing was lost.
//!
//! A supervisor starts two APIs, three workers, Redis and Postgres, submits runs of random graphs and decides about
//! them, and injects faults that also occur in operation, only more often. When it has stopped, every accepted run
//! must end, and the archive must show that each of them kept the invariants (`check`) and that every answer was true
//! (`answers`). The seed determines the submissions and the faults; the exact timing depends on the machine.

mod answers;
mod check;
mod decisions;
mod deployment;
mod effects;
mod faults;
mod graphs;
mod load;
mod process;
mod proxy;
mod redis_pair;
mod report;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;

pub use check::{Executions, Violations, check_run};
pub use faults::{FAULT_KINDS, Made};
pub use report::{Answers, Report};

/// The parameters of a test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `switchyard` program to test.
    pub binary: PathBuf,
    pub seed: u64,
    /// How long faults are injected. Unfinished runs may finish afterwards, undisturbed.
    pub trouble: Duration,
    /// How long there may be no progress at the end, without faults, before the runs count as stalled.
    pub settle_timeout: Duration,
}

/// Injects faults, waits for the runs to end, and checks.
pub async fn run(plan: &Plan) -> anyhow::Result<Report> {
    // The HTTP clients below need a cryptography provider, which the program installs once.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let effects = effects::Effects::serve().await?;
    let mut deployment = deployment::Deployment::start(&plan.binary).await?;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut load = load::Load::start(random_part(&mut random), &deployment.addresses(), &effects.url());
    let faults = faults::make_trouble(&mut deployment, random_part(&mut random), plan.trouble).await?;
    deployment.heal().await?;
    load.submit_no_more();
    deployment.until_all_ended(plan.settle_timeout).await?;
    let asked = load.dismiss_users().await;
    // The last requests of users may have reopened a run.
    deployment.until_all_ended(plan.settle_timeout).await?;
    load.stop().await?;
    let mut report = Report { seed: plan.seed, faults, ..Report::default() };
    let history = deployment.history().await?;
    check::everything(&history, &asked, &effects.counts(), &mut report).await?;
    report.violations.append(&mut deployment.violations);
    deployment.stop();
    Ok(report)
}

/// A separate random stream for a part of the test, so that one part does not shift the numbers of another.
fn random_part(random: &mut StdRng) -> StdRng {
    StdRng::from_rng(random)
}
