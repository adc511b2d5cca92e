//! The hot store in Redis 7 or newer, or Valkey, without modules.
//!
//! Two paths. A plain step (settle, release, claim) is one script call: `step.rs` and `scripts/step.lua`, which mirror
//! the core. Everything else reads what it touches, lets the core itself decide, and writes that if nothing has changed
//! meanwhile: `slow_path/`. Both write the same three hashes for each run (`record/`), and append what happened to one
//! stream, from which it goes to the archive in order (`ship.rs`).
//!
//! What is answered to workers is in Redis, not yet in the archive: losing it repeats work. Acceptance (`accept.rs`) and
//! commands (`command.rs`) wait for the archive. When Redis loses something, the archive is right: runs are rebuilt from
//! it, and work is repeated, never skipped (`recovery/`).
//!
//! Every name in Redis is in `keys.rs` and in `docs/reference/keys.md`.

mod accept;
mod admin;
mod binding;
mod client;
mod command;
mod fast_path;
mod graph_gc;
mod graphs;
mod health;
mod keys;
mod outbox;
mod plain;
mod probe;
mod pubsub;
mod record;
mod recovery;
mod retry;
mod scripts;
mod slow_path;
mod store;
mod task;
mod timers;
mod workers;

pub use admin::{
    Bound, CleanedUp, CleanupPolicy, Consumer, ConsumerMonitor, ConsumerStatus, Ghost, Holdings,
    InspectedKey, Left, LivePods, LongPending, MonitorSettings, Pass, Pending, RedisAdmin, Worker,
    WorkerReport,
};
pub use keys::Keys;
pub use outbox::Shipped;
pub use probe::probe;
pub use retry::RetryPolicy;
pub use store::{RedisSettings, RedisStore};
