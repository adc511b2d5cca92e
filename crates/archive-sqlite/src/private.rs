//! Files and folders that only their owner may read: they hold inputs, outputs and API keys.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::Notice;

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

/// Creates a file, or empties an existing one.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(FILE).open(path)
}

/// Opens a file for reading and writing, and creates it if it does not exist.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE).open(path)
}

/// Creates a folder and its missing parents.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Removes the permissions of group and others from a data folder that an earlier release created, and from our files
/// in it. A folder that also holds other files keeps its own permissions, because other users may need access to
/// those; if it is open to others, a warning says so.
pub(crate) fn tighten(folder: &Path, is_ours: impl Fn(&str) -> bool, notice: &Notice) -> io::Result<()> {
    let mut alone = true;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(&is_ours) {
            alone = false;
            continue;
        }
        let mode = if entry.file_type()?.is_dir() { FOLDER } else { FILE };
        restrict(&entry.path(), mode, notice);
    }
    if alone {
        restrict(folder, FOLDER, notice);
    } else if is_open(folder) {
        notice.warn(&format!(
            "{} may be read by others, and has more in it than runs: `chmod 700` it, or give runs a folder of their own",
            folder.display()
        ));
    }
    Ok(())
}

fn restrict(path: &Path, mode: u32, notice: &Notice) {
    if !is_open(path) {
        return;
    }
    match fs::set_permissions(path, Permissions::from_mode(mode)) {
        Ok(()) => tracing::info!(path = %path.display(), "others may no longer read it"),
        Err(error) => {
            notice.warn(&format!(
                "{} may be read by others, and that cannot be changed: {error}",
                path.display()
            ));
        }
    }
}

/// Whether group or others have any permission.
pub(crate) fn is_open(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|about| !about.is_symlink() && about.permissions().mode() & 0o077 != 0)
}
