//! The clean-shutdown marker: a file beside the database that records the state of the database. It is removed before
//! the database is written to. The order in which the two reach the disk does not matter: a marker that reappears
//! after a power cut does not match a database that was written to since, or there is a log.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::check::{beside, log_of};
use crate::private;

/// Whether the database is as the last process left it at a clean shutdown.
pub(super) fn fits(path: &Path) -> bool {
    let left = fs::read_to_string(marker_of(path));
    matches!((left, state(path)), (Ok(left), Ok(found)) if left == found)
}

/// Removes the marker. Called before the first write.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(marker_of(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes the marker. Called after the last write, when the log is empty.
pub(super) fn leave(path: &Path) -> io::Result<()> {
    if fs::metadata(log_of(path)).is_ok_and(|about| about.len() > 0) {
        return Ok(());
    }
    private::create(&marker_of(path))?.write_all(state(path)?.as_bytes())
}

fn marker_of(path: &Path) -> PathBuf {
    beside(path, ".clean")
}

fn state(path: &Path) -> io::Result<String> {
    let about = fs::metadata(path)?;
    let modified = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("closed in order: {} bytes, modified at {} ns\n", about.len(), modified.as_nanos()))
}
