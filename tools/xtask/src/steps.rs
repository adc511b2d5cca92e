//! What `cargo xtask test` does, one step after the other.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::from_pypi::{MOTO, SCHEMATHESIS};
use crate::{licences, python, tidy, tools, valkey};

/// When this process began: each step is printed with the seconds since then.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn test() -> anyhow::Result<()> {
    cargo("formatting", &["fmt", "--all", "--check"])?;
    cargo("lints", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])?;
    tell("licences");
    licences::check()?;
    tell("tidy");
    tidy::check()?;
    tell("tools");
    tools::install()?;
    cargo("tests", &["test", "--workspace"])?;
    for (step, tool) in [("requests that are made up", &SCHEMATHESIS), ("payloads in S3", &MOTO)] {
        let (variable, program) = tool.install()?;
        cargo_with(step, tool.tests, &[(variable, program.as_os_str())])?;
    }
    tell("tests of the Python package");
    python::test()?;
    valkey::test()?;
    tell("everything passed");
    Ok(())
}

/// All steps share one target folder, so that nothing is built twice for the same purpose.
pub(crate) fn cargo(step: &str, args: &[&str]) -> anyhow::Result<()> {
    cargo_with(step, args, &[])
}

pub(crate) fn cargo_with(step: &str, args: &[&str], environment: &[(&str, &OsStr)]) -> anyhow::Result<()> {
    tell(step);
    let mut command = Command::new(env!("CARGO"));
    // A snapshot that differs is a failure here, not a file to review later.
    command.args(args).env("INSTA_UPDATE", "no").env("CARGO_TERM_COLOR", "never");
    command.envs(environment.iter().copied());
    let status =
        command.status().with_context(|| format!("`cargo {}` could not be started", args.join(" ")))?;
    if !status.success() {
        bail!("{step}: `cargo {}` failed", args.join(" "));
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a task tells what it is doing")]
pub(crate) fn tell(what: &str) {
    eprintln!("xtask: {} s: {what}", BEGUN.elapsed().as_secs());
}
