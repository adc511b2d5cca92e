//! The steps of `cargo xtask test`.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::from_pypi::{MOTO, SCHEMATHESIS};
use crate::{licences, python, tidy, tools, valkey};

/// Every step builds with the same options: for one package, or with other features, cargo would rebuild
/// dependencies.
pub(crate) const WORKSPACE: &str = "--workspace";
pub(crate) const ALL: &str = "--all-features";

/// When this process began: each step is printed with the seconds since then.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn test() -> anyhow::Result<()> {
    cargo("formatting", &["fmt", "--all", "--check"])?;
    tell("licences");
    licences::check()?;
    tell("tidy");
    tidy::check()?;
    tell("tools");
    tools::install()?;
    cargo("lints, and the build of the tests", &["test", WORKSPACE, ALL, "--no-run", "--quiet"])?;
    cargo("tests", &["test", WORKSPACE, ALL])?;
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

/// Runs a cargo command. All steps share one target folder, so that nothing is built twice for the same purpose.
pub(crate) fn cargo(step: &str, args: &[&str]) -> anyhow::Result<()> {
    cargo_with(step, args, &[])
}

pub(crate) fn cargo_with(step: &str, args: &[&str], environment: &[(&str, &OsStr)]) -> anyhow::Result<()> {
    tell(step);
    let mut command = Command::new(env!("CARGO"));
    // A snapshot that differs is a failure here, not a file to review later.
    command.args(args).env("INSTA_UPDATE", "no").env("CARGO_TERM_COLOR", "never");
    lint(&mut command);
    command.envs(environment.iter().copied());
    let status =
        command.status().with_context(|| format!("`cargo {}` could not be started", args.join(" ")))?;
    if !status.success() {
        bail!("{step}: `cargo {}` failed", args.join(" "));
    }
    Ok(())
}

/// Has clippy compile the workspace instead of rustc, so that dependencies are built once and not also checked. Every
/// command that builds has to use this, or cargo builds the workspace again without it.
pub(crate) fn lint(command: &mut Command) {
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    // The encoding in which `cargo clippy` passes on `--deny warnings`.
    command.env("CLIPPY_ARGS", "--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
}

#[expect(clippy::print_stderr, reason = "a task tells what it is doing")]
pub(crate) fn tell(what: &str) {
    eprintln!("xtask: {} s: {what}", BEGUN.elapsed().as_secs());
}
