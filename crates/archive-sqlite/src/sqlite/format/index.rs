//! The index of the log (`-shm`). SQLite writes its header after a commit is on the disk, and rebuilds it from the
//! log at the next start. Until then the index still has the number of frames, even if the log was cut.

use super::{Words, be32};

const HEADER_BYTES: usize = 48;
const CHECKPOINT_AT: usize = 96;
const VERSION: u32 = 3_007_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct LogIndex {
    /// Number of committed frames in the log.
    pub(in crate::sqlite) frames: u32,
    /// Number of those frames that a checkpoint has copied into the database file.
    pub(in crate::sqlite) copied: u32,
    /// The salts of the log that this index describes.
    pub(in crate::sqlite) salts: [u8; 8],
}

impl LogIndex {
    /// Reads the header. `None` if it is missing, or its two copies differ because it was being written.
    pub(in crate::sqlite) fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        if bytes.get(HEADER_BYTES..2 * HEADER_BYTES)? != header {
            return None;
        }
        let sum = Words::NATIVE.add((0, 0), &header[..40]);
        let is_ready = header[12] != 0;
        if !is_ready || native(header, 0)? != VERSION || (native(header, 40)?, native(header, 44)?) != sum {
            return None;
        }
        let salts = header[32..40].try_into().ok()?;
        Some(Self { frames: native(header, 16)?, copied: native(bytes, CHECKPOINT_AT)?, salts })
    }
}

/// A number in the byte order of this machine, which shared memory uses.
fn native(bytes: &[u8], at: usize) -> Option<u32> {
    be32(bytes, at).map(|number| u32::from_ne_bytes(number.to_be_bytes()))
}
