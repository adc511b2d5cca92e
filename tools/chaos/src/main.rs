//! `cargo xtask chaos`: runs the fault test for as long as its arguments say.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Parser;
use switchyard_chaos::{Plan, run};

/// Make trouble for processes that share a Redis and a Postgres, and check that nothing was lost
#[derive(Parser)]
struct Args {
    /// The `switchyard` to put to the test
    #[arg(long)]
    binary: PathBuf,

    /// How long things go wrong
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// Repeats what was submitted and what was done
    #[arg(long)]
    seed: Option<u64>,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the report is what it is for")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let plan = Plan {
        binary: args.binary.canonicalize()?,
        seed: args.seed.unwrap_or_else(rand::random),
        trouble: Duration::from_secs(args.seconds),
        settle_timeout: Duration::from_secs(60),
    };
    println!("seed {}", plan.seed);
    let report = run(&plan).await?;
    println!("{report}");
    if !report.violations.is_empty() {
        bail!("something was lost");
    }
    Ok(())
}
