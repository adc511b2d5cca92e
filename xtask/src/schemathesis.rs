//! Schemathesis, in an environment of its own under `target/`, for the tests that make requests up.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// A newer one may find more: raise it by hand, and look at what it finds.
const VERSION: &str = "4.32.5";

/// Where the tests look for it.
pub(crate) const VARIABLE: &str = "SWITCHYARD_SCHEMATHESIS";

/// The arguments of `cargo` that run those tests.
pub(crate) const TESTS: [&str; 8] =
    ["test", "--package", "switchyard-server", "--test", "api", "schemathesis", "--", "--ignored"];

/// Answers where the program is.
pub(crate) fn install() -> anyhow::Result<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let folder = target.join(format!("schemathesis-{VERSION}"));
    let program = folder.join("bin/st");
    if program.exists() {
        return Ok(program);
    }
    // An installation that was interrupted is begun anew.
    let _ = std::fs::remove_dir_all(&folder);
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(folder.join("bin/pip")).args([
        "install",
        "--quiet",
        &format!("schemathesis=={VERSION}"),
    ]))?;
    Ok(program)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?} could not be started"))?;
    if !status.success() {
        bail!("{command:?} failed; the tests need schemathesis {VERSION} from PyPI, and python3 with venv");
    }
    Ok(())
}
