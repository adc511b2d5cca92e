//! Everything that can be set, and the one place that reads the environment.
//!
//! - [`Settings`]: one typed struct; a setting is one entry in `table.rs`, and everything below follows from it
//! - [`SETTINGS`]: the same as data: key, environment name, flag, unit, bounds, default, text
//! - [`load`]: file, environment, flags; the later wins, and [`Loaded`] knows where each value came from
//! - [`reference`]: the page `docs/reference/settings.md`
//!
//! This crate never decides what a setting does, and never prints.

mod file;
mod lists;
mod load;
mod names;
mod reference;
mod setting;
mod surroundings;
mod table;
mod value;

pub use lists::{EnvNames, Networks, Origins};
pub use load::{Given, Loaded, Origin, Refused, Sources, Warning, load};
pub use names::{CONFIG_ENV, CONFIG_FILE};
pub use reference::reference;
pub use setting::{Flag, Scope, Setting};
pub use surroundings::{Environment, aws, no_color, user};
pub use table::{SETTINGS, Settings};
pub use value::{
    BadValue, ByteSize, Factor, HeaderList, LogFormat, Minutes, Ratio, Seconds, Secret, ServerUrl,
};
