//! Registers workflow files whenever they change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use switchyard_core::Hash;
use switchyard_lang::Program;
use switchyard_runtime::{Engine, Principal, ids};

use crate::errors::Failure;
use crate::{input, output, settings};

/// The modification time and size of a file, which show a change without reading it.
type Stamp = (Option<SystemTime>, u64);

pub(super) struct Files {
    paths: Vec<PathBuf>,
    /// The stamp of every workflow file in the folders of the watched files: one may include another.
    seen: BTreeMap<PathBuf, Stamp>,
    /// The hash of the last registered version, by file.
    registered: BTreeMap<PathBuf, Hash>,
}

impl Files {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, seen: BTreeMap::new(), registered: BTreeMap::new() }
    }

    /// If any file changed, compiles all and registers those that differ from their last version.
    pub(super) async fn register_changed(&mut self, engine: &Engine) {
        let now = self.stamps();
        if now == self.seen {
            return;
        }
        self.seen = now;
        for file in self.watched() {
            if let Err(failure) = self.register(engine, &file).await {
                failure.tell();
            }
        }
    }

    async fn register(&mut self, engine: &Engine, file: &Path) -> Result<(), Failure> {
        let program = compile(file).await?;
        if self.registered.get(file) == Some(&program.hash) {
            return Ok(());
        }
        let (by, program) = (Principal::local(settings::user()), std::sync::Arc::new(program));
        let record = engine.register_workflow(&by, &ids::operation_id(), &program).await?;
        self.registered.insert(file.to_owned(), program.hash);
        output::tell(&format!("{}: {} version {}", file.display(), record.name, record.version));
        Ok(())
    }

    /// The files to register; those of a folder are sorted by name.
    fn watched(&self) -> Vec<PathBuf> {
        self.paths
            .iter()
            .flat_map(|path| if path.is_dir() { workflows_in(path) } else { vec![path.clone()] })
            .collect()
    }

    fn stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        let folders: BTreeSet<PathBuf> = self.paths.iter().map(|path| folder_of(path)).collect();
        let beside = folders.iter().flat_map(|folder| workflows_in(folder)).chain(self.watched());
        beside.map(|file| (file.clone(), stamp(&file))).collect()
    }
}

async fn compile(file: &Path) -> Result<Program, Failure> {
    let name = file.display().to_string();
    let compiled = tokio::task::spawn_blocking(move || input::program(&name)).await;
    compiled.map_err(|error| Failure::store(format!("the compiler ended badly: {error}")))?
}

fn folder_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => ".".into(),
    }
}

/// The files directly in a folder that may be workflows.
fn workflows_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_yaml = |path: &PathBuf| {
        path.is_file() && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_yaml).collect();
    files.sort();
    files
}

fn stamp(file: &Path) -> Stamp {
    std::fs::metadata(file).map_or((None, 0), |about| (about.modified().ok(), about.len()))
}
