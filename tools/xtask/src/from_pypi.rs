//! Programs from PyPI that some tests need, each in its own virtual environment under `target/`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::steps::{ALL, WORKSPACE};

pub(crate) struct Tool {
    name: &'static str,
    /// A newer version may find more: raise it by hand, and review its findings.
    version: &'static str,
    /// Extras to install, appended to the name.
    extras: &'static str,
    program: &'static str,
    /// The environment variable that gives the tests its path.
    variable: &'static str,
    /// The arguments of `cargo` that run those tests.
    pub(crate) tests: &'static [&'static str],
}

/// Generates requests from the OpenAPI document.
pub(crate) const SCHEMATHESIS: Tool = Tool {
    name: "schemathesis",
    version: "4.32.5",
    extras: "",
    program: "st",
    variable: "SWITCHYARD_SCHEMATHESIS",
    tests: &["test", WORKSPACE, ALL, "--test", "api", "schemathesis", "--", "--ignored"],
};

/// A server with an S3 API.
pub(crate) const MOTO: Tool = Tool {
    name: "moto",
    version: "5.2.5",
    extras: "[server,s3]",
    program: "moto_server",
    variable: "SWITCHYARD_MOTO",
    tests: &["test", WORKSPACE, ALL, "--test", "s3", "--", "--ignored"],
};

impl Tool {
    /// Installs the program; returns the environment variable of the tests and the path.
    pub(crate) fn install(&self) -> anyhow::Result<(&'static str, PathBuf)> {
        let Self { name, version, extras, program, variable, .. } = self;
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let folder = target.join(format!("{name}-{version}"));
        let program = folder.join("bin").join(program);
        if !program.exists() {
            // An interrupted installation is started over.
            let _ = std::fs::remove_dir_all(&folder);
            self.run("python3".as_ref(), &["-m".as_ref(), "venv".as_ref(), folder.as_os_str()])?;
            let wanted = format!("{name}{extras}=={version}");
            let pip = folder.join("bin/pip");
            self.run(pip.as_os_str(), &["install".as_ref(), "--quiet".as_ref(), wanted.as_ref()])?;
        }
        Ok((variable, program))
    }

    fn run(&self, program: &OsStr, args: &[&OsStr]) -> anyhow::Result<()> {
        let mut command = Command::new(program);
        let status = command.args(args).status();
        let status = status.with_context(|| format!("{command:?} could not be started"))?;
        if !status.success() {
            let Self { name, version, .. } = self;
            bail!("{command:?} failed; the tests need {name} {version} from PyPI, and python3 with venv");
        }
        Ok(())
    }
}
