//! Runs the tests that need a Redis with Valkey instead.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::steps::{ALL, WORKSPACE};
use crate::{python, steps, tools};

/// Selects the server that the tests start: `tools/test-servers/src/redis.rs` and `python/tests/servers.py` read it.
const VARIABLE: &str = "SWITCHYARD_TEST_REDIS";

const PROGRAM: &str = "valkey-server";

/// Debian splits it: the first package has the name, the second the program.
const PACKAGES: [&str; 2] = ["valkey-server", "valkey-tools"];

/// The folder of the Redis tests; each is selected by its file name.
const REDIS_TESTS: &str = "crates/store-redis/tests";

/// Tests of other crates that need a Redis: the format of stored checkpoints, and whole processes.
const OTHER_TESTS: [&str; 2] = ["golden", "shared"];

/// All tests of the Python package, including the cluster, except those that mostly wait.
const PYTHON_TESTS: [&str; 6] = [
    "--deselect",
    "tests/test_plain_workers.py::test_a_reader_that_dies",
    "--deselect",
    "tests/test_plain_workers.py::test_the_process_that_moves_signals_is_killed",
    "--deselect",
    "tests/test_processes.py",
];

pub(crate) fn test() -> anyhow::Result<()> {
    let program = if tools::answers(PROGRAM.as_ref()) {
        PathBuf::from(PROGRAM)
    } else if let Some(codename) = debian() {
        from_debian(&codename)?
    } else {
        steps::tell("Valkey: skipped, for this is not Debian, and there is no valkey-server in the path");
        return Ok(());
    };
    let environment = [(VARIABLE, program.as_os_str())];
    let names = test_names()?;
    let chosen = names.iter().flat_map(|name| ["--test", name]);
    let words: Vec<&str> = ["test", WORKSPACE, ALL].into_iter().chain(chosen).collect();
    steps::cargo_with("tests on Valkey", &words, &environment)?;
    steps::tell("tests of the Python package on Valkey");
    python::once_more(&PYTHON_TESTS, &environment)
}

fn test_names() -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = OTHER_TESTS.map(str::to_owned).into();
    for found in fs::read_dir(root()?.join(REDIS_TESTS))? {
        let path = found?.path();
        let is_test = path.extension() == Some(OsStr::new("rs")) || path.join("main.rs").exists();
        if let Some(name) = path.file_stem().filter(|_| is_test) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn root() -> anyhow::Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?)
}

/// The codename of this release of Debian.
fn debian() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let said = |name: &str| release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    (said("ID")? == "debian").then(|| said("VERSION_CODENAME").map(str::to_owned))?
}

/// Downloads the packages with separate package lists and unpacks them under `target/`: neither the machine's package
/// sources nor its services change. The required libraries were installed with `redis-server`.
fn from_debian(codename: &str) -> anyhow::Result<PathBuf> {
    let root = root()?;
    let folder = root.join("target/valkey");
    let program = folder.join("usr/bin").join(PROGRAM);
    if tools::answers(program.as_os_str()) {
        return Ok(program);
    }
    let (unpacked, fetched) = (root.join("target/valkey-new"), root.join("target/valkey-fetched"));
    for old in [&folder, &unpacked, &fetched] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    fs::create_dir_all(fetched.join("lists/partial"))?;
    fetch(&mirror(codename)?, codename, &fetched)?;
    for found in fs::read_dir(&fetched)? {
        let package = found?.path();
        if package.extension() == Some(OsStr::new("deb")) {
            run(Command::new("dpkg").arg("--extract").arg(package).arg(&unpacked))?;
        }
    }
    fs::rename(&unpacked, &folder)?;
    if !tools::answers(program.as_os_str()) {
        bail!("{} does not start; install the Debian package `{PROGRAM}`", program.display());
    }
    Ok(program)
}

/// The package mirror of this machine, from its own package sources.
fn mirror(codename: &str) -> anyhow::Result<String> {
    let output = Command::new("apt-get").args(["--print-uris", "update"]).output();
    let output = output.context("there is no apt-get")?;
    let addresses = String::from_utf8_lossy(&output.stdout).into_owned();
    let release = format!("/dists/{codename}/InRelease'");
    let mirror = addresses.lines().find_map(|line| Some(line.split_once(&release)?.0.trim_matches('\'')));
    let mirror = mirror.with_context(|| {
        format!("no package source of this machine has {codename}; install the Debian package `{PROGRAM}`")
    })?;
    Ok(mirror.to_owned())
}

/// Downloads the packages. Releases before 13 have them only in their backports.
fn fetch(mirror: &str, codename: &str, folder: &Path) -> anyhow::Result<()> {
    let suites = [format!("{codename}-backports"), codename.to_owned()];
    for suite in &suites {
        let sources = folder.join("sources.list");
        let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
        fs::write(&sources, format!("deb [signed-by={key}] {mirror} {suite} main\n"))?;
        let asked = run(apt_get(folder, &sources).arg("update"));
        if asked.and_then(|()| run(apt_get(folder, &sources).arg("download").args(PACKAGES))).is_ok() {
            return Ok(());
        }
    }
    bail!("{} is neither in {} nor in {} of {mirror}", PACKAGES.join(" with "), suites[0], suites[1]);
}

fn apt_get(folder: &Path, sources: &Path) -> Command {
    let set = |name: &str, value: &Path| format!("{name}={}", value.display());
    let options = [
        set("Dir::Etc::sourcelist", sources),
        set("Dir::Etc::sourceparts", Path::new("/dev/null")),
        set("Dir::State::lists", &folder.join("lists")),
        set("Dir::Cache", folder),
        // The default download user may not write here.
        "APT::Sandbox::User=root".to_owned(),
        "APT::Update::Error-Mode=any".to_owned(),
    ];
    let mut command = Command::new("apt-get");
    command.args(["--quiet", "--quiet"]).current_dir(folder);
    command.args(options.iter().flat_map(|option| ["-o", option]));
    command
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?} could not be started"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}
