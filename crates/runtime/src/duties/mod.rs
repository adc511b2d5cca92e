//! Background duties: one file each. What one pass does is a method of the hot store, which tests call.

mod reclaim;
mod retention;
mod schedules;
mod timers;

pub use reclaim::reclaim_forever;
pub use retention::retain_forever;
pub use schedules::keep_schedules;
pub use timers::keep_time;
