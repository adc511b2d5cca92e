//! The engine: every operation on runs. The CLI, the server and the SDK call the engine; it calls the two stores, and
//! exposes neither of them.

mod approvals;
mod audit;
mod body;
mod bulk;
mod control;
mod dead;
mod delete;
mod error;
mod follow;
mod fork;
mod health;
mod history;
mod logs;
mod mutate;
mod operation;
mod patch;
mod recover;
mod retain;
mod runs;
mod schedules;
mod submit;
mod tasks;
mod view;
mod waits;
mod workers;
mod workflows;

use std::sync::Arc;

use switchyard_observe::Observe;
use switchyard_store::{Archive, Cas, Clock, HotStore};

use crate::{ApiKeys, Catalog, Payloads};

pub use audit::Audit;
pub use dead::PurgeRequest;
pub use error::EngineError;
pub use follow::Follow;
pub use fork::{Fork, Forked};
pub use health::NotReady;
pub use history::History;
pub use logs::{LogFilter, SentLine};
pub use patch::PatchRequest;
pub use recover::Recovered;
pub use retain::Retained;
pub use schedules::Pass;
pub use submit::{Start, Submission};
pub use workers::WorkerClaim;

pub(crate) use logs::keep_lines;
pub(crate) use mutate::{mutate, request};

use workers::SeenWorkers;

/// The engine over one pair of stores.
#[derive(Clone)]
pub struct Engine {
    pub(crate) hot: Arc<dyn HotStore>,
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) payloads: Payloads,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observe: Observe,
    history: History,
    keys: Arc<ApiKeys>,
    seen_workers: Arc<SeenWorkers>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl Engine {
    pub fn new(
        hot: Arc<dyn HotStore>,
        archive: Arc<dyn Archive>,
        cas: Arc<dyn Cas>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let catalog = Arc::new(Catalog::new(archive.clone(), archive.clone(), hot.clone()));
        let payloads = Payloads::new(cas);
        let history = History::new(archive.clone(), payloads.clone());
        let keys = Arc::new(ApiKeys::new(archive.clone(), clock.clone()));
        let (observe, seen_workers) = Default::default();
        Self { hot, archive, catalog, payloads, clock, observe, history, keys, seen_workers }
    }

    /// Reports to the same observer as the hot store.
    pub fn observed(self, observe: Observe) -> Self {
        Self { observe, ..self }
    }

    /// Reads that need no hot store.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The API keys.
    pub fn keys(&self) -> &Arc<ApiKeys> {
        &self.keys
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub fn payloads(&self) -> &Payloads {
        &self.payloads
    }
}
