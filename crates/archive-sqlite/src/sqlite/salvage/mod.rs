//! Reads a database that SQLite refuses, or of which SQLite would read only a part.
//!
//! - `pages`: the newest version of every page
//! - `rows`: which rows on a page are events, names of runs, definitions
//! - `survey`: the readable part of every run's history
//! - `tables`: the tables that do not follow from events

mod pages;
mod rows;
mod survey;
mod tables;

pub(super) use pages::{Pages, read_log};
pub(super) use rows::event_keys;
pub(crate) use survey::{History, Survey, Verdict};
pub(crate) use tables::copy_tables;
