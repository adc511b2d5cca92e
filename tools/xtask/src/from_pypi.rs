//! Programs from PyPI that some tests are run with, each in an environment of its own under `target/`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::steps::{ALL, WORKSPACE};

pub(crate) struct Tool {
    name: &'static str,
    /// A newer one may find more: raise it by hand, and look at what it finds.
    version: &'static str,
    /// Behind the name, what is to be installed with it.
    extras: &'static str,
    program: &'static str,
    /// Where the tests look for it.
    variable: &'static str,
    /// The arguments of `cargo` that run those tests.
    pub(crate) tests: &'static [&'static str],
}

/// Makes requests up from the OpenAPI document.
pub(crate) const SCHEMATHESIS: Tool = Tool {
    name: "schemathesis",
    version: "4.32.5",
    extras: "",
    program: "st",
    variable: "SWITCHYARD_SCHEMATHESIS",
    tests: &["test", WORKSPACE, ALL, "--test", "api", "schemathesis", "--", "--ignored"],
};

/// Speaks the language of S3.
pub(crate) const MOTO: Tool = Tool {
    name: "moto",
    version: "5.2.5",
    extras: "[server,s3]",
    program: "moto_server",
    variable: "SWITCHYARD_MOTO",
    tests: &["test", WORKSPACE, ALL, "--test", "s3", "--", "--ignored"],
};

impl Tool {
    /// Answers where the tests are to look for it.
    pub(crate) fn install(&self) -> anyhow::Result<(&'static str, PathBuf)> {
        let Self { name, version, extras, program, variable, .. } = self;
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let folder = target.join(format!("{name}-{version}"));
        let program = folder.join("bin").join(program);
        if !program.exists() {
            // An installation that was interrupted is begun anew.
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
