//! The newest version of each page of a database: from the log if it has the page, else from the database file.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::sqlite::check::log_of;
use crate::sqlite::format::be32;
use crate::sqlite::format::log::{FRAME_HEADER_BYTES, HEADER_BYTES, Log, Worth};
use crate::sqlite::format::page::{self, Cell, FILE_HEADER_BYTES};

/// SQLite's default page size, which is not changed here.
pub(in crate::sqlite) const PAGE_BYTES: usize = 4_096;

/// A database without a writer.
#[derive(Debug)]
pub(crate) struct Pages {
    file: File,
    log: Option<File>,
    page_bytes: usize,
    /// Number of pages. The first is page 1.
    pub(in crate::sqlite) count: u32,
    /// The frame of the log that has the newest version of a page.
    newest: HashMap<u32, usize>,
    /// Frames that were committed and do not verify.
    bad: Vec<usize>,
}

impl Pages {
    /// The database as it was after its last commit, with the frames of the log that SQLite would ignore.
    pub(in crate::sqlite) fn open(path: &Path) -> io::Result<Self> {
        let log = read_log(path)?;
        let committed = log.committed();
        Self::with_log(path, &log, committed)
    }

    /// The database with the first `frames` frames of its log.
    pub(in crate::sqlite) fn with_log(path: &Path, log: &Log, frames: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        let page_bytes = match log.frames.is_empty() {
            true => page_bytes_of(&file),
            false => log.page_bytes,
        };
        let mut newest = HashMap::new();
        let mut bad = Vec::new();
        for (n, frame) in log.frames[..frames].iter().enumerate() {
            match frame.worth {
                Worth::Sound | Worth::Behind => drop(newest.insert(frame.page, n)),
                Worth::Bad | Worth::Other => bad.push(n),
            }
        }
        let in_file = u32::try_from(file.metadata()?.len() / page_bytes as u64).unwrap_or(u32::MAX);
        let count = newest.keys().copied().max().unwrap_or(0).max(in_file);
        let log = if frames == 0 { None } else { Some(File::open(log_of(path))?) };
        Ok(Self { file, log, page_bytes, count, newest, bad })
    }

    pub(in crate::sqlite) fn read(&self, page: u32) -> io::Result<Vec<u8>> {
        match self.newest.get(&page) {
            Some(frame) => self.frame(*frame),
            None => {
                let mut bytes = vec![0; self.page_bytes];
                let at = u64::from(page.saturating_sub(1)) * self.page_bytes as u64;
                self.file.read_exact_at(&mut bytes, at)?;
                Ok(bytes)
            }
        }
    }

    pub(in crate::sqlite) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// How many frames were committed and do not verify.
    pub(in crate::sqlite) fn doubtful_count(&self) -> u32 {
        u32::try_from(self.bad.len()).unwrap_or(u32::MAX)
    }

    /// The page in one of these frames: some of its rows may still be intact.
    pub(in crate::sqlite) fn doubtful(&self, n: u32) -> io::Result<Vec<u8>> {
        self.bad.get(n as usize).map_or(Err(io::ErrorKind::NotFound.into()), |frame| self.frame(*frame))
    }

    fn frame(&self, frame: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.page_bytes];
        let at = HEADER_BYTES + frame * (FRAME_HEADER_BYTES + self.page_bytes) + FRAME_HEADER_BYTES;
        match &self.log {
            Some(log) => log.read_exact_at(&mut bytes, at as u64)?,
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        Ok(bytes)
    }

    /// The whole record of a cell; `None` if its overflow pages make no sense.
    pub(in crate::sqlite) fn record(&self, cell: &Cell<'_>) -> Option<Vec<u8>> {
        // A damaged length must not exhaust the memory.
        if cell.record_bytes as u64 > u64::from(self.count) * self.page_bytes as u64 {
            return None;
        }
        let mut record = cell.here.to_vec();
        let mut next = cell.rest;
        while record.len() < cell.record_bytes {
            let page = self.read(next.filter(|page| (1..=self.count).contains(page))?).ok()?;
            let left = cell.record_bytes - record.len();
            record.extend_from_slice(&page[4..page.len().min(4 + left)]);
            next = be32(&page, 0);
        }
        Some(record)
    }

    /// The free pages, which hold deleted rows, as far as the free list can be followed.
    pub(in crate::sqlite) fn free(&self) -> HashSet<u32> {
        let mut free = HashSet::new();
        let mut trunk = self.read(1).ok().and_then(|first| be32(&first, 32)).unwrap_or(0);
        while (1..=self.count).contains(&trunk) && free.insert(trunk) {
            let Ok(page) = self.read(trunk) else { break };
            let leaves = be32(&page, 4).unwrap_or(0) as usize;
            free.extend((0..leaves.min(page.len() / 4)).filter_map(|n| be32(&page, 8 + 4 * n)));
            trunk = be32(&page, 0).unwrap_or(0);
        }
        free
    }
}

/// The log beside a database; an empty one if there is none.
pub(in crate::sqlite) fn read_log(path: &Path) -> io::Result<Log> {
    match File::open(log_of(path)) {
        Ok(log) => {
            let page_bytes = File::open(path).map_or(PAGE_BYTES, |file| page_bytes_of(&file));
            Log::read(io::BufReader::with_capacity(1 << 20, log), page_bytes)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Log::default()),
        Err(error) => Err(error),
    }
}

fn page_bytes_of(file: &File) -> usize {
    let mut header = [0; FILE_HEADER_BYTES];
    let read = file.read_exact_at(&mut header, 0);
    read.ok().and_then(|()| page::page_bytes(&header)).unwrap_or(PAGE_BYTES)
}
