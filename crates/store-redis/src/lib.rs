//! The hot store in Redis 7 or newer, or Valkey, without modules.
//!
//! Changes take one of two paths. On the fast path (`fast_path/`), one call of `scripts/step.lua`, which mirrors the
//! core, settles, releases and claims. On the slow path (`slow_path/`), a process reads the runs that a change touches,
//! lets the core decide, and writes the decision if those runs have not changed meanwhile. Both paths write the same
//! hashes for each run (`record/`) and append its events to one stream, the outbox, from which one process at a time
//! ships them to the archive in order (`outbox/`).
//!
//! A step is answered when Redis has it; the archive gets it later. Acceptance (`accept.rs`) and commands
//! (`command.rs`) are answered when the archive has them. If Redis loses data, runs are rebuilt from the archive
//! (`recovery/`): work is repeated, never skipped.
//!
//! `keys.rs` builds every key in Redis; `docs/reference/keys.md` documents them.

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
