//! Copies everything that is whole in a damaged data folder into a new one. The damaged folder is not changed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use switchyard_core::{CasRef, Hash};
use switchyard_store::{Ack, Definitions, Journal, StoreError};

use crate::folder::{ARCHIVE_FILE, FolderLock, LEFT_OUT_FOLDER};
use crate::sqlite::salvage::{History, Survey, Verdict, copy_tables};
use crate::{DataFolder, DiskCas, Notice, SqliteArchive, private};

/// Histories that are appended before the first of them is awaited.
const BATCH: usize = 1_000;
const SAY_EVERY: Duration = Duration::from_secs(2);

/// The readable histories of a damaged folder.
#[derive(Debug, Default, Serialize)]
pub struct Surveyed {
    /// Number of histories that are complete.
    pub whole: usize,
    /// Histories that are continued from an earlier point.
    pub cut: Vec<RunFault>,
    /// Histories that are not brought over: they had ended, or their beginning is missing.
    pub left_out: Vec<RunFault>,
}

/// A history that is not complete.
#[derive(Debug, Serialize)]
pub struct RunFault {
    /// The id of the run, or its number in the database if the id is gone.
    pub run: String,
    pub what: String,
    /// Number of events before the damage.
    pub events: usize,
}

/// The result of a salvage.
#[derive(Debug, Default, Serialize)]
pub struct Salvaged {
    #[serde(flatten)]
    pub histories: Surveyed,
    /// Tables that could not be copied completely, with the reason.
    pub tables: Vec<(String, String)>,
    pub payloads: usize,
    /// Payloads that are gone or damaged, with their holders.
    pub missing_payloads: BTreeMap<String, Vec<String>>,
}

impl Salvaged {
    /// Whether nothing was missing.
    pub fn is_whole(&self) -> bool {
        let Surveyed { cut, left_out, .. } = &self.histories;
        cut.is_empty() && left_out.is_empty() && self.tables.is_empty() && self.missing_payloads.is_empty()
    }
}

impl Surveyed {
    fn add(&mut self, verdict: Verdict, fault: RunFault) {
        match verdict {
            Verdict::Whole => self.whole += 1,
            Verdict::Cut => self.cut.push(fault),
            Verdict::LeftOut => self.left_out.push(fault),
        }
    }
}

impl RunFault {
    fn of(history: &History) -> Self {
        let what = history.fault.clone().unwrap_or_default();
        Self { run: history.name.clone(), what, events: history.events.len() }
    }
}

impl DataFolder {
    /// Lists which histories can be read in a folder that need not open. Changes nothing.
    pub fn survey(path: &Path) -> Result<Surveyed, StoreError> {
        let _nobody_starts = FolderLock::share(path)?;
        let mut surveyed = Surveyed::default();
        for history in Survey::of(&path.join(ARCHIVE_FILE))?.histories() {
            surveyed.add(history.verdict, RunFault::of(&history));
        }
        Ok(surveyed)
    }

    /// Creates a new folder with everything that is whole in a damaged one. The damaged one is not changed.
    pub async fn salvage(from: &Path, to: &Path, notice: Notice) -> Result<Salvaged, StoreError> {
        let _nobody_starts = FolderLock::share(from)?;
        refuse_used(to)?;
        let survey = Survey::of(&from.join(ARCHIVE_FILE))?;
        let folder = Self::open_telling(to, notice.clone())?;
        let archive = folder.archive()?;
        let histories = copy_histories(&survey, &archive, to, &notice).await?;
        let tables = copy_tables(survey.pages(), &to.join(ARCHIVE_FILE))?;
        let (payloads, missing_payloads) =
            copy_payloads(&Self::cas_in(from), &folder.cas(), &archive).await?;
        Ok(Salvaged { histories, tables, payloads, missing_payloads })
    }
}

fn refuse_used(folder: &Path) -> Result<(), StoreError> {
    let used = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    match used {
        true => Err(StoreError::unavailable(format!("{} is not a new or empty folder", folder.display()))),
        false => Ok(()),
    }
}

async fn copy_histories(
    survey: &Survey,
    archive: &SqliteArchive,
    to: &Path,
    notice: &Notice,
) -> Result<Surveyed, StoreError> {
    for (hash, text) in survey.definitions() {
        archive.put_definition(hash, text).await?;
    }
    let mut surveyed = Surveyed::default();
    let mut batch = Vec::new();
    let mut said = Instant::now();
    for history in survey.histories() {
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            notice.info(&format!("{} whole histories so far", surveyed.whole));
        }
        if batch.len() >= BATCH {
            settle(&mut batch, &mut surveyed).await;
        }
        write_left_out(&history, to)?;
        let fault = RunFault::of(&history);
        match history.verdict {
            Verdict::LeftOut => surveyed.add(Verdict::LeftOut, fault),
            kept => batch.push((kept, fault, archive.append(history.events))),
        }
    }
    settle(&mut batch, &mut surveyed).await;
    Ok(surveyed)
}

/// Waits until histories are written. A history that contradicts another is left out.
async fn settle(batch: &mut Vec<(Verdict, RunFault, Ack)>, surveyed: &mut Surveyed) {
    for (verdict, fault, ack) in batch.drain(..) {
        match ack.await {
            Ok(()) => surveyed.add(verdict, fault),
            Err(refused) => surveyed.add(Verdict::LeftOut, RunFault { what: refused.to_string(), ..fault }),
        }
    }
}

/// Writes the readable events that are not in the new archive to a file, one event per line.
fn write_left_out(history: &History, to: &Path) -> Result<(), StoreError> {
    let before = if history.verdict == Verdict::LeftOut { &history.events[..] } else { &[] };
    if before.is_empty() && history.behind.is_empty() {
        return Ok(());
    }
    let folder = to.join(LEFT_OUT_FOLDER);
    let path = folder.join(format!("{}.jsonl", history.name));
    let write = || {
        private::create_folder(&folder)?;
        let mut file: BufWriter<File> = BufWriter::new(private::create(&path)?);
        for event in before.iter().chain(&history.behind) {
            let line = json!({ "seq": event.seq, "at": event.at.as_millis(), "body": event.kind });
            writeln!(file, "{line}")?;
        }
        file.flush()
    };
    write().map_err(|e: io::Error| StoreError::unavailable(format!("cannot write {}: {e}", path.display())))
}

/// Copies the payloads that the new archive refers to, if their content matches their hash. Returns the number of
/// copied payloads, and the missing ones with their holders.
async fn copy_payloads(
    from: &DiskCas,
    to: &DiskCas,
    archive: &SqliteArchive,
) -> Result<(usize, BTreeMap<String, Vec<String>>), StoreError> {
    let mut holders: BTreeMap<Hash, Vec<String>> = BTreeMap::new();
    for (hash, holder) in archive.payload_holders().await? {
        holders.entry(hash).or_default().push(holder);
    }
    let (mut copied, mut missing) = (0, BTreeMap::new());
    for (hash, holders) in holders {
        let reference = CasRef { hash, bytes: 0 };
        match from.read(reference) {
            Ok(content) => {
                to.write(&content)?;
                copied += 1;
            }
            Err(StoreError::Unknown { .. } | StoreError::Corrupt(_)) => {
                missing.insert(reference.to_string(), holders);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((copied, missing))
}
