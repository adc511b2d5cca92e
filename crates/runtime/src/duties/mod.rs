//! Background duties: one file each. One pass of a duty is a method of the engine or of a store, which tests call.

mod bulk;
mod operations;
mod reclaim;
mod recover;
mod report_worker;
mod retention;
mod schedules;
mod signals;
mod timers;

pub use bulk::work_bulk_forever;
pub use operations::forget_operations_forever;
pub use reclaim::reclaim_forever;
pub use recover::recover_forever;
pub(crate) use report_worker::report_worker_forever;
pub use retention::retain_forever;
pub use schedules::keep_schedules;
pub use signals::{PlainSettings, move_signals, take_back_forever};
pub use timers::keep_time;
