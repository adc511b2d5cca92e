//! The write-ahead log: a header, then frames. A frame is 24 bytes about a page and the page itself.
//!
//! SQLite reads a log up to the first frame that does not verify, and silently ignores everything after it. That is
//! right for a torn log: a crash interrupted a transaction that was not acknowledged. It is wrong for a log that is
//! damaged in its middle. This module distinguishes the two. Checksums are chained from frame to frame, and each
//! frame carries its own: the frames after a bad one verify from the checksum that the bad one states. A transaction
//! is synced before the next one is written, so a crash that tears a log does not leave frames of a later transaction
//! after the torn frame.

use std::io::{self, Read};

use super::{Sum, Words, be32};

pub(in crate::sqlite) const HEADER_BYTES: usize = 32;
pub(in crate::sqlite) const FRAME_HEADER_BYTES: usize = 24;

/// The last bit is the byte order of the checksum words.
const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;
/// SQLite's own limit; a frame with a higher page number is not a frame.
const PAGES_MAX: u32 = 0xffff_fffe;

/// The state of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Worth {
    /// The frame verifies, and so does everything before it.
    Sound,
    /// A frame of this generation, after the first bad frame, that verifies from the frame before it.
    Behind,
    /// A frame of this generation that does not verify.
    Bad,
    /// A frame from before the log was last restarted, or not a frame.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct Frame {
    pub(in crate::sqlite) page: u32,
    /// Whether this is the last frame of a transaction.
    pub(in crate::sqlite) commits: bool,
    pub(in crate::sqlite) worth: Worth,
}

/// The kind of damage of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sqlite) enum Fault {
    /// The header does not verify, and there are frames behind it.
    Header,
    /// A frame does not verify, and later transactions follow it. Frames count from 1.
    Middle { frame: usize, of: usize },
}

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Log {
    pub(in crate::sqlite) page_bytes: usize,
    /// The bytes as they are written, to be compared with the index.
    pub(in crate::sqlite) salts: [u8; 8],
    pub(in crate::sqlite) header_is_sound: bool,
    pub(in crate::sqlite) frames: Vec<Frame>,
}

impl Log {
    /// Reads a log to its end. `page_bytes` is the page size of the database, for a header that is damaged.
    pub(in crate::sqlite) fn read(mut file: impl Read, page_bytes: usize) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        if !fill(&mut file, &mut header)? {
            return Ok(Self::default());
        }
        let mut chain = Chain::begin(&header, page_bytes);
        let mut frame = vec![0; FRAME_HEADER_BYTES + chain.page_bytes];
        let mut frames = Vec::new();
        while fill(&mut file, &mut frame)? {
            frames.push(chain.next(&frame));
        }
        Ok(Self {
            page_bytes: chain.page_bytes,
            salts: chain.salts,
            header_is_sound: chain.header_is_sound,
            frames,
        })
    }

    /// Number of frames that SQLite reads: those up to the last commit before the first frame that does not verify.
    pub(in crate::sqlite) fn readable(&self) -> usize {
        let sound = self.frames.iter().take_while(|frame| frame.worth == Worth::Sound).count();
        self.frames[..sound].iter().rposition(|frame| frame.commits).map_or(0, |last| last + 1)
    }

    /// Number of frames that were written and committed, readable or not.
    pub(in crate::sqlite) fn committed(&self) -> usize {
        let commits =
            |frame: &Frame| frame.commits && frame.worth != Worth::Other && frame.worth != Worth::Bad;
        self.frames.iter().rposition(commits).map_or(0, |last| last + 1)
    }

    pub(in crate::sqlite) fn fault(&self) -> Option<Fault> {
        if !self.header_is_sound {
            let any = self.frames.iter().any(|frame| frame.worth == Worth::Behind);
            return any.then_some(Fault::Header);
        }
        let bad = self.frames.iter().position(|frame| frame.worth != Worth::Sound)?;
        let of_this_generation = |frame: &Frame| frame.worth != Worth::Other;
        // A crash may have interrupted the transaction of the bad frame, but not a later one.
        let rest = &self.frames[bad..];
        let end = rest.iter().position(|frame| frame.commits && of_this_generation(frame))?;
        let later = rest[end + 1..].iter().any(of_this_generation);
        later.then(|| {
            let last = self.frames.iter().rposition(of_this_generation).unwrap_or(bad);
            Fault::Middle { frame: bad + 1, of: last + 1 }
        })
    }
}

/// The running checksum over the frames.
struct Chain {
    page_bytes: usize,
    salts: [u8; 8],
    words: Words,
    header_is_sound: bool,
    /// Whether the header and every frame so far verified.
    unbroken: bool,
    /// The checksum that the previous frame states, and the computed one.
    before: (Sum, Sum),
    salts_before: [u8; 8],
}

impl Chain {
    fn begin(header: &[u8; HEADER_BYTES], page_bytes: usize) -> Self {
        let number = |at| be32(header, at).unwrap_or_default();
        let stored = (number(24), number(28));
        let in_header = number(8) as usize;
        let sized = in_header.is_power_of_two() && (512..=65_536).contains(&in_header);
        let by_magic = match number(0) {
            MAGIC => Some(Words::Little),
            magic if magic == MAGIC | 1 => Some(Words::Big),
            _ => None,
        };
        let verified = by_magic.filter(|words| words.add((0, 0), &header[..24]) == stored);
        let sound = verified.is_some() && number(4) == VERSION && sized;
        let words = verified.unwrap_or(Words::NATIVE);
        let computed = words.add((0, 0), &header[..24]);
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        Self {
            page_bytes: if sound { in_header } else { page_bytes },
            salts,
            words,
            header_is_sound: sound,
            unbroken: sound,
            before: (stored, computed),
            salts_before: salts,
        }
    }

    fn next(&mut self, frame: &[u8]) -> Frame {
        let number = |at| be32(frame, at).unwrap_or_default();
        let (page, stored) = (number(0), (number(16), number(20)));
        let sum = |from| self.words.add(self.words.add(from, &frame[..8]), &frame[FRAME_HEADER_BYTES..]);
        let (said, real) = self.before;
        let computed = sum(said);
        let links = computed == stored || (said != real && sum(real) == stored);
        let mut salts = [0; 8];
        salts.copy_from_slice(&frame[8..16]);
        // If the header is damaged, two frames that fit each other are of one generation.
        let generation = if self.header_is_sound { self.salts } else { self.salts_before };
        let plausible = (1..=PAGES_MAX).contains(&page) && salts == generation;
        let worth = match (plausible, links) {
            (true, true) if self.unbroken => Worth::Sound,
            (true, true) => Worth::Behind,
            (true, false) => Worth::Bad,
            (false, _) => Worth::Other,
        };
        self.unbroken &= worth == Worth::Sound;
        self.before = (stored, computed);
        self.salts_before = salts;
        Frame { page, commits: number(4) != 0, worth }
    }
}

/// Fills the buffer. Returns `false` if the file ends first: the rest is not a frame.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
