//! The tests of the Python package: in their own virtual environment under `target/`, with real servers.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::steps::{ALL, WORKSPACE, cargo, lint};

/// Builds the package, checks its types, runs its tests.
pub(crate) fn test() -> anyhow::Result<()> {
    let environment = Environment::built()?;
    environment.run(&["mypy", "--strict", "switchyard"])?;
    environment.run(&["pytest"])
}

/// Runs the package's tests again, with additional pytest arguments and environment variables.
pub(crate) fn once_more(chosen: &[&str], variables: &[(&str, &OsStr)]) -> anyhow::Result<()> {
    let words = [&["pytest"], chosen].concat();
    run(Environment::built()?.command(&words).envs(variables.iter().copied()))
}

struct Environment {
    /// The folder of the package.
    package: PathBuf,
    folder: PathBuf,
}

impl Environment {
    /// An environment with the current state of the package installed.
    fn built() -> anyhow::Result<Self> {
        let root = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let environment = Self { package: root.join("python"), folder: root.join("target/python") };
        environment.prepare()?;
        // The profile of the other tests, so that their build is reused.
        let mut maturin = environment.command(&["maturin", "develop", "--quiet", "--profile", "dev"]);
        lint(&mut maturin);
        run(&mut maturin)?;
        // Some tests run the `switchyard` program, built as for the tests of the workspace.
        cargo("the program", &["test", WORKSPACE, ALL, "--no-run"])?;
        Ok(environment)
    }

    /// Creates the environment, again if the requirements have changed.
    fn prepare(&self) -> anyhow::Result<()> {
        let requirements = self.package.join("tests/requirements.txt");
        let wanted = fs::read_to_string(&requirements)
            .with_context(|| format!("{} cannot be read", requirements.display()))?;
        let installed = self.folder.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
            return Ok(());
        }
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&self.folder))?;
        let pip = ["pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        self.run(&[pip.as_slice(), &[&requirements.to_string_lossy()]].concat())?;
        fs::write(&installed, wanted)?;
        Ok(())
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<()> {
        run(&mut self.command(words))
    }

    /// A command in the environment, run in the folder of the package.
    fn command(&self, words: &[&str]) -> Command {
        let bin = self.folder.join("bin");
        let mut path = OsString::from(&bin);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(bin.join(words[0]));
        command.args(&words[1..]).current_dir(&self.package);
        command.env("VIRTUAL_ENV", &self.folder).env("PATH", path);
        command
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
