//! The hot store in Redis 7 or newer, or Valkey, without modules.
//!
//! Two paths. A plain step (settle, release, claim) is one script call: `step.rs` and `scripts/step.lua`, which mirror
//! the core. Everything else reads what it touches, lets the core itself decide, and writes that if nothing has changed
//! meanwhile: `rare/`. Both write the same three hashes for each run (`record/`), and append what happened to one
//! stream, from which it goes to the archive in order (`ship.rs`).
//!
//! What is answered to workers is in Redis, not yet in the archive: losing it repeats work. Acceptance (`accept.rs`) and
//! commands (`command.rs`) wait for the archive. When Redis loses something, the archive is right: runs are rebuilt from
//! it, and work is repeated, never skipped (`recover.rs`).
//!
//! Every name in Redis is in `keys.rs` and in `docs/reference/keys.md`.

mod accept;
mod address;
mod away;
mod binding;
mod client;
mod command;
mod graphs;
mod keys;
mod link;
mod listen;
mod moments;
mod outbox;
mod oversee;
mod patience;
mod plain;
mod rare;
mod record;
mod recover;
mod refused;
mod scripts;
mod share;
mod ship;
mod step;
mod store;
mod task;
mod tidy;
mod trouble;

pub use away::away;
pub use keys::Keys;
pub use oversee::{
    Bound, CleanedUp, CleanupPolicy, Consumer, Ghost, Holdings, Left, LivePods, LongPending, Lookout,
    Overseer, Pass, Pending, Rounds, Shown, Standing, Worker, WorkerReport,
};
pub use patience::Patience;
pub use ship::Shipped;
pub use store::{RedisSettings, RedisStore};
