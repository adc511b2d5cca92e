//! The programs that the tests need besides a Rust toolchain. Missing ones are installed with the system's package
//! client.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The program to look for, and the package that contains it.
const NEEDED: [(&str, &str); 4] = [
    ("python3", "python3-venv"),
    ("redis-server", "redis-server"),
    ("postgres", "postgresql"),
    ("openssl", "openssl"),
];

pub(crate) fn install() -> anyhow::Result<()> {
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    apt_get(&["update", "--quiet"], &missing)?;
    apt_get(
        &[&["install", "--yes", "--quiet", "--no-install-recommends"], missing.as_slice()].concat(),
        &missing,
    )
}

fn is_there(program: &str) -> bool {
    answers(program.as_ref())
        || fs::read_dir("/usr/lib/postgresql").is_ok_and(|versions| {
            // Debian keeps the programs of each Postgres version in a separate folder, outside the path.
            versions.flatten().any(|version| version.path().join("bin").join(program).exists())
        })
}

pub(crate) fn answers(program: &OsStr) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn apt_get(args: &[&str], missing: &[&str]) -> anyhow::Result<()> {
    let needed = missing.join(", ");
    let status =
        Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").status().with_context(
            || format!("the tests need {needed}, and there is no apt-get to install it with"),
        )?;
    if !status.success() {
        bail!("`apt-get {}` failed; the tests need {needed}, install it or run this as root", args.join(" "));
    }
    Ok(())
}
