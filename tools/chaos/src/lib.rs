//! Real processes, real faults, and the question whether anything was lost.
//!
//! A supervisor starts two APIs, three workers, Redis and Postgres, submits runs of random graphs and decides about them, and
//! does to the processes what operations does to them, only more often. When it has stopped, every accepted run must end,
//! and the archive must show that each of them kept the rules (`check`) and that every answer was true (`answers`). The
//! seed decides what is submitted and what is done; when exactly things meet is up to the machine.

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

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `switchyard` to put to the test.
    pub binary: PathBuf,
    pub seed: u64,
    /// How long things go wrong. What is under way then may finish, undisturbed.
    pub trouble: Duration,
    /// How long nothing may happen in the undisturbed end before that counts as standing still.
    pub settle_timeout: Duration,
}

/// Makes trouble, waits for the end, and checks.
pub async fn run(plan: &Plan) -> anyhow::Result<Report> {
    // For the HTTP clients below: which one is the program's to say, once.
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
    // What a user asked for last may have brought a run back.
    deployment.until_all_ended(plan.settle_timeout).await?;
    load.stop().await?;
    let mut report = Report { seed: plan.seed, faults, ..Report::default() };
    let history = deployment.history().await?;
    check::everything(&history, &asked, &effects.counts(), &mut report).await?;
    report.violations.append(&mut deployment.violations);
    deployment.stop();
    Ok(report)
}

/// Parts of the work draw from streams of their own, so that one does not shift what another draws.
fn random_part(random: &mut StdRng) -> StdRng {
    StdRng::from_rng(random)
}
