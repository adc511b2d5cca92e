//! The runtime: the engine that takes commands, the workers that execute nodes, and the background duties.
//!
//! - [`Engine`]: everything that can be done with runs, over a [`HotStore`](switchyard_store::HotStore) and an
//!   [`Archive`](switchyard_store::Archive)
//! - [`kinds`]: one file for each kind of node
//! - [`worker`]: slots that claim, execute, settle
//! - [`duties`]: one file for each background duty
//! - [`keys`]: who may use the API
//!
//! This crate never opens a store itself, and never reads the environment (its HTTP client honours the usual
//! proxy variables).

mod attempt;
pub mod catalog;
pub mod duties;
mod engine;
mod evaluate;
pub mod handlers;
mod host;
pub mod ids;
pub mod keys;
pub mod kinds;
pub mod payloads;
mod principal;
mod secrets;
pub mod worker;

pub use attempt::AttemptError;
pub use catalog::Catalog;
pub use engine::{
    Audit, Engine, EngineError, Follow, Fork, Forked, History, LogFilter, NotReady, Pass, PatchRequest,
    PurgeRequest, Recovered, Retained, SentLine, Start, Submission, WorkerClaim,
};
pub use handlers::{ClaimError, Handler, HandlerContext, Handlers};
pub use host::{Host, HostOptions};
pub use keys::{ApiKeys, NewApiKey};
pub use payloads::Payloads;
pub use principal::Principal;
pub use secrets::{Revealed, Secrets};
pub use switchyard_api::{NodeView, PatchReport, PatchView, RunView};
pub use worker::{Busy, WorkerPool, WorkerSettings};
