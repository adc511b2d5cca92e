//! SQLite's file formats, read without SQLite: <https://sqlite.org/fileformat2.html>. Pure: bytes in, facts out.
//!
//! - `log`: the write-ahead log, and which of its frames are damaged
//! - `index`: the log's index in shared memory, which has the length of the log
//! - `page`: the rows on a page of a table or an index

pub(super) mod index;
pub(super) mod log;
pub(super) mod page;

#[cfg(test)]
mod tests;

/// A big-endian number at an offset; `None` past the end.
pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// The two running sums that a checksum of the log is made of.
pub(super) type Sum = (u32, u32);

/// The order of the bytes in the words that a checksum adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    Little,
    Big,
}

impl Words {
    pub(super) const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Continues a checksum over bytes whose number is a multiple of 8.
    pub(super) fn add(self, (mut a, mut b): Sum, bytes: &[u8]) -> Sum {
        let word = |bytes: [u8; 4]| match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        };
        for pair in bytes.chunks_exact(8) {
            let [p, q, r, s, t, u, v, w] = *pair else { continue };
            a = a.wrapping_add(word([p, q, r, s])).wrapping_add(b);
            b = b.wrapping_add(word([t, u, v, w])).wrapping_add(a);
        }
        (a, b)
    }
}
