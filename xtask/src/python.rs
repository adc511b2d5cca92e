//! The tests of the Python package: in an environment of their own under `target/`, on real servers.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Builds the package, checks its types, runs its tests.
pub(crate) fn test() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
    let package = root.join("python");
    let environment = Environment::prepared(root, &package.join("tests/requirements.txt"))?;
    // The profile of the other tests: what they built is not built again.
    environment.run(&package, &["maturin", "develop", "--quiet", "--profile", "dev"])?;
    environment.run(&package, &["mypy", "--strict", "switchyard"])?;
    // Some tests are about the program itself, as the tests of the workspace have it: not built again for a package alone.
    crate::steps::cargo("the program", &["test", "--workspace", "--no-run"])?;
    environment.run(&package, &["pytest"])
}

struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Made again when the requirements have changed.
    fn prepared(root: &Path, requirements: &Path) -> anyhow::Result<Self> {
        let environment = Self { folder: root.join("target/python") };
        let wanted = fs::read_to_string(requirements)
            .with_context(|| format!("{} cannot be read", requirements.display()))?;
        let installed = environment.folder.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
            return Ok(environment);
        }
        if environment.folder.exists() {
            fs::remove_dir_all(&environment.folder)?;
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment.folder))?;
        let pip = ["pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        environment.run(root, &[pip.as_slice(), &[&requirements.to_string_lossy()]].concat())?;
        fs::write(&installed, wanted)?;
        Ok(environment)
    }

    /// A program of the environment.
    fn run(&self, folder: &Path, words: &[&str]) -> anyhow::Result<()> {
        let bin = self.folder.join("bin");
        let mut path = OsString::from(&bin);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(bin.join(words[0]));
        command.args(&words[1..]).current_dir(folder).env("VIRTUAL_ENV", &self.folder).env("PATH", path);
        run(&mut command)
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("`{program}` could not be started"))?;
    if !status.success() {
        bail!("python: `{program}` failed");
    }
    Ok(())
}
