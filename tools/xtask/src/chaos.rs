//! `cargo xtask chaos`: the fault test, for any length. It is a separate program, so that xtask stays quick to build.

use clap::Args;

use crate::steps::cargo;

#[derive(Args)]
pub(crate) struct ChaosArgs {
    /// How long things go wrong
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// Repeats what was submitted and what was done
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(args: &ChaosArgs) -> anyhow::Result<()> {
    cargo("the program", &["build", "--release", "--package", "switchyard"])?;
    let seconds = args.seconds.to_string();
    let seed = args.seed.map(|seed| seed.to_string());
    let mut words = vec!["run", "--release", "--quiet", "--package", "switchyard-chaos", "--"];
    words.extend(["--binary", "target/release/switchyard", "--seconds", &seconds]);
    if let Some(seed) = &seed {
        words.extend(["--seed", seed]);
    }
    cargo("trouble", &words)
}
