//! Background duties: one file each, with a plain function for one pass that tests call.

mod reclaim;
mod timers;

pub use reclaim::reclaim_forever;
pub use timers::keep_time;
