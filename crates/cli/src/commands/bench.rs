//! `switchyard bench`: measures this machine.

use clap::Args as ClapArgs;

use crate::errors::Failure;
use crate::output;

/// Measure workloads on this machine: warm-up, repetitions, medians
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  switchyard bench
  switchyard bench chain --chain-runs 1 --chain-steps 10000
  switchyard bench queue --json
  switchyard bench http --http-url http://127.0.0.1:7070

State goes to a new folder under the current one (or --store embedded:DIR) and is removed afterwards.
Figures differ between machines and moments: compare only what was measured in one go.")]
pub(crate) struct Args {
    #[command(flatten)]
    bench: switchyard_bench::Args,
}

pub(crate) async fn execute(args: &Args) -> Result<(), Failure> {
    // The subscribers of `bench http` are connections of this process, too.
    switchyard_server::allow_many_connections();
    let measured =
        switchyard_bench::run(&args.bench, |stage| output::tell(&format!("measuring {stage}"))).await;
    let report = measured.map_err(|error| Failure::store(format!("{error:#}")))?;
    if args.bench.json {
        output::json(&report.to_json())?
    } else {
        output::line(&report.to_string())?
    }
    Ok(())
}
