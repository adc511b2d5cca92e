//! Compiled workflows by the hash of their definition: compiled once and shared.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchyard_base::Diagnostics;
use switchyard_core::Hash;
use switchyard_lang::{Body, Program};
use switchyard_store::{Definitions, HotStore, Registry, StoreError};

pub struct Catalog {
    programs: Mutex<HashMap<Hash, Arc<Program>>>,
    definitions: Arc<dyn Definitions>,
    registry: Arc<dyn Registry>,
    hot: Arc<dyn HotStore>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("programs", &self.programs.lock().len()).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("the stored definition {hash} does not compile any more: {problems}")]
    Stale { hash: Hash, problems: Diagnostics },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many compiled programs are kept. Beyond this, half of them are dropped and compiled again when needed.
const PROGRAMS_MAX: usize = 10_000;

impl Catalog {
    pub fn new(
        definitions: Arc<dyn Definitions>,
        registry: Arc<dyn Registry>,
        hot: Arc<dyn HotStore>,
    ) -> Self {
        Self { programs: Mutex::new(HashMap::new()), definitions, registry, hot }
    }

    /// Adds a program for all processes: its definition is durable when this returns.
    pub async fn add(&self, program: Arc<Program>) -> Result<(), StoreError> {
        if self.programs.lock().contains_key(&program.hash) {
            return Ok(());
        }
        // A definition is stored under its hash, so storing it again changes nothing: a lost answer is safe to retry.
        self.make_known(&program).await.map_err(StoreError::not_applied)?;
        self.keep(program);
        Ok(())
    }

    async fn make_known(&self, program: &Program) -> Result<(), StoreError> {
        self.definitions.put_definition(program.hash, program.canonical.clone()).await?;
        self.hot.learn(program.ir.clone()).await?;
        self.hot.keep_definition(program.hash, &program.canonical).await
    }

    fn keep(&self, program: Arc<Program>) {
        let mut programs = self.programs.lock();
        if programs.len() >= PROGRAMS_MAX {
            let mut kept = 0;
            programs.retain(|_, _| {
                kept += 1;
                kept % 2 == 0
            });
        }
        programs.insert(program.hash, program);
    }

    /// The program of a stored definition.
    pub async fn get(&self, hash: Hash) -> Result<Arc<Program>, CatalogError> {
        if let Some(program) = self.programs.lock().get(&hash) {
            return Ok(program.clone());
        }
        let canonical = self.stored(hash).await?.ok_or_else(|| StoreError::unknown("definition", hash))?;
        let program =
            Program::from_canonical(&canonical).map_err(|problems| CatalogError::Stale { hash, problems })?;
        let program = Arc::new(program);
        self.hot.learn(program.ir.clone()).await.map_err(StoreError::not_applied)?;
        self.hot.keep_definition(hash, &program.canonical).await.map_err(StoreError::not_applied)?;
        self.keep(program.clone());
        Ok(program)
    }

    /// Reads a definition from the archive, or from the hot store while the archive is unavailable, so that runs in
    /// flight continue.
    async fn stored(&self, hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
        match self.definitions.definition(hash).await {
            Err(error) if error.is_outage() => match self.hot.kept_definition(hash).await {
                Ok(Some(kept)) => Ok(Some(kept)),
                _ => Err(error),
            },
            answer => answer,
        }
    }

    /// The program that a `map`, `loop` or `workflow` node runs.
    pub async fn body(&self, body: &Body) -> Result<Arc<Program>, CatalogError> {
        match body {
            Body::Inline(program) => {
                self.add(program.clone()).await?;
                Ok(program.clone())
            }
            Body::Named { workflow, version } => {
                let version = version.map(std::num::NonZeroU32::get);
                let record = self.registry.workflow(workflow, version).await?;
                let record = record.ok_or_else(|| StoreError::unknown("workflow", workflow))?;
                self.get(record.definition).await
            }
        }
    }
}
