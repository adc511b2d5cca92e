//! Transcripts of the real binary: exit code, stdout and stderr, with ids and times filtered out.

mod approvals;
mod config;
mod definitions;
mod harness;
mod interrupted;
mod keys;
mod observed;
mod patch;
mod run;
mod runs;
mod schedules;
mod store;
mod up;
