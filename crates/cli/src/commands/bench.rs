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
  switchyard bench --store redis://127.0.0.1
  switchyard bench chain queue --store redis://127.0.0.1 --archive postgres://me@127.0.0.1/db
  switchyard bench lists --archive postgres://me@127.0.0.1/db --repeat 1 --warmup 0
  switchyard bench waiting --store redis://127.0.0.1 --repeat 1 --warmup 0

State goes to a new folder under the current one (or --store embedded:DIR) and is removed afterwards.
In Redis it goes under a prefix of its own, in Postgres into a schema of its own; both are removed, and nothing else is.
Beside what was measured there stands what Redis allows (redis_limit_per_s): how often a second a script can be called, by
as many slots, that gives it the commands of one step and does nothing else; and ping_p50_ms, a plain round trip.
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
