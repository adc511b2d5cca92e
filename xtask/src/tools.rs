//! What the tests need besides a Rust toolchain. Missing tools are installed with the system's package client.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The program to look for, and the package that has it.
const NEEDED: [(&str, &str); 1] = [("python3", "python3")];

pub(crate) fn install() -> anyhow::Result<()> {
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    apt_get(&["update", "--quiet"])?;
    apt_get(&[&["install", "--yes", "--quiet"], missing.as_slice()].concat())
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn apt_get(args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("apt-get")
        .args(args)
        .status()
        .context("the tests need python3, and there is no apt-get to install it with")?;
    if !status.success() {
        bail!("`apt-get {}` failed; the tests need python3", args.join(" "));
    }
    Ok(())
}
