//! All settings, and the only code that reads the environment.
//!
//! - [`Settings`]: one typed struct; a setting is one entry in `table.rs`, from which everything below is generated
//! - [`SETTINGS`]: the same as data: key, environment name, flag, unit, bounds, default, text
//! - [`load`]: reads file, environment and flags; the later wins, and [`Loaded`] knows the source of each value
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
