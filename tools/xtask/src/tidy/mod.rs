//! `cargo xtask tidy`: checks of the repository that the compiler does not make.

mod links;
mod modules;
mod paths;
mod text;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::steps::tell;

/// The tracked files of the repository, with the text of those that have one.
pub(crate) struct Repository {
    root: PathBuf,
    files: BTreeSet<String>,
}

/// One finding: file, line (0 for the whole file), sentence.
pub(crate) struct Finding {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

pub(crate) fn check() -> anyhow::Result<()> {
    let repository = Repository::open()?;
    let mut findings = Vec::new();
    for check in [links::check, paths::check, text::check, modules::check] {
        findings.extend(check(&repository)?);
    }
    findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    for Finding { file, line, message } in &findings {
        tell(&format!("{file}:{line}: {message}"));
    }
    if !findings.is_empty() {
        bail!("tidy: {} findings", findings.len());
    }
    Ok(())
}

impl Repository {
    fn open() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(&root)
            .output()
            .context("`git ls-files` could not be started")?;
        if !listed.status.success() {
            bail!("`git ls-files` failed: {}", String::from_utf8_lossy(&listed.stderr));
        }
        let listed = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
        let exists = |file: &&str| !file.is_empty() && root.join(file).is_file();
        let files = listed.split('\0').filter(exists).map(str::to_owned).collect();
        Ok(Self { root, files })
    }

    /// Tracked files whose names end with one of these.
    fn with_suffix<'a>(&'a self, suffixes: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.files.iter().map(String::as_str).filter(|file| suffixes.iter().any(|end| file.ends_with(end)))
    }

    fn text(&self, file: &str) -> anyhow::Result<String> {
        fs::read_to_string(self.root.join(file)).with_context(|| format!("{file} could not be read"))
    }

    /// Whether a tracked file or a folder with tracked files has this path.
    fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        self.files.contains(path) || self.files.iter().any(|file| file.starts_with(&folder))
    }
}

/// Lines of a Markdown text outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}
