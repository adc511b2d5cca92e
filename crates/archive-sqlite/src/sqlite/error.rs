//! SQLite's errors, in sentences that say what to do.

use std::path::Path;

use rusqlite::ErrorCode;
use switchyard_store::StoreError;

/// A sentence about an SQLite error. SQLite says "disk I/O error" for several ways of running out of space.
pub(super) fn sentence(error: &rusqlite::Error, path: &Path) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "database or disk is full".to_owned(),
        Some(ErrorCode::SystemIoFailure) if disk_is_full(path) => format!("the disk is full ({error})"),
        Some(ErrorCode::ReadOnly) => format!("the file or its folder is not writable ({error})"),
        Some(ErrorCode::CannotOpen) => format!("the file or its folder cannot be opened ({error})"),
        _ => error.to_string(),
    }
}

pub(super) fn cannot_open(path: &Path, error: &rusqlite::Error) -> StoreError {
    StoreError::unavailable(format!("cannot open {}: {}", path.display(), sentence(error, path)))
}

pub(super) fn cannot_read(path: &Path, error: &rusqlite::Error) -> StoreError {
    use rusqlite::Error as E;
    // A column holds another type than was written to it.
    if matches!(error, E::InvalidColumnType(..) | E::FromSqlConversionFailure(..) | E::Utf8Error(..)) {
        return StoreError::Corrupt(format!("{}: {error}", path.display()));
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt(format!("{}: {error}", path.display()))
        }
        _ => {
            StoreError::unavailable(format!("cannot read from {}: {}", path.display(), sentence(error, path)))
        }
    }
}

fn disk_is_full(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    // The file system counts as full when unprivileged users have less than 64 KiB left.
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail * disk.f_frsize < 64 * 1024)
}
