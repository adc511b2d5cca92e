//! The engine as its users meet it: whole workflows, in process, on a real folder.

mod bad_input;
mod budgets;
mod bulk;
mod clock;
mod disk_full;
mod docs;
mod examples;
mod labels;
mod patches;
mod retention;
mod runs;
mod schedules;
mod stopping;
mod support;
mod waits;
