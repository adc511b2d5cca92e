//! What `cargo xtask test` does, one step after the other.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::{licences, tools};

pub(crate) fn test() -> anyhow::Result<()> {
    let begun = Instant::now();
    cargo("formatting", &["fmt", "--all", "--check"])?;
    cargo("lints", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])?;
    tell("licences");
    licences::check()?;
    tell("tools");
    tools::install()?;
    cargo("tests", &["test", "--workspace"])?;
    tell(&format!("everything passed in {} s", begun.elapsed().as_secs()));
    Ok(())
}

/// All steps share one target folder, so that nothing is built twice for the same purpose.
fn cargo(step: &str, args: &[&str]) -> anyhow::Result<()> {
    tell(step);
    let mut command = Command::new(env!("CARGO"));
    // A snapshot that differs is a failure here, not a file to review later.
    command.args(args).env("INSTA_UPDATE", "no").env("CARGO_TERM_COLOR", "never");
    let status =
        command.status().with_context(|| format!("`cargo {}` could not be started", args.join(" ")))?;
    if !status.success() {
        bail!("{step}: `cargo {}` failed", args.join(" "));
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a task tells what it is doing")]
fn tell(what: &str) {
    eprintln!("xtask: {what}");
}
