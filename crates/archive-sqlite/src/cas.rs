//! The CAS on disk: `cas/ab/abcdef…`, a file per payload, named by its SHA-256.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use switchyard_core::{CasRef, Hash};
use switchyard_store::{Cas, StoreError};

use crate::folder::FolderLock;
use crate::private;

#[derive(Debug, Clone)]
pub struct DiskCas {
    folder: Arc<Path>,
    /// Which of the 256 shelf folders are known to exist, with their names synced to disk.
    shelves: Arc<Mutex<[bool; 256]>>,
    /// One lock per shelf, held while a file is written, renewed or removed.
    changing: Arc<[Mutex<()>; 256]>,
    /// Keeps the folder locked for this process while payloads are being written.
    _lock: Option<Arc<FolderLock>>,
}

impl DiskCas {
    pub(crate) fn new(folder: PathBuf, lock: Option<Arc<FolderLock>>) -> Self {
        Self {
            folder: folder.into(),
            shelves: Arc::new(Mutex::new([false; 256])),
            changing: Arc::new([const { Mutex::new(()) }; 256]),
            _lock: lock,
        }
    }

    fn shelf_of(&self, hash: Hash) -> PathBuf {
        self.folder.join(format!("{:02x}", hash.0[0]))
    }

    fn file_of(&self, hash: Hash) -> PathBuf {
        self.shelf_of(hash).join(hash.hex())
    }

    pub(crate) fn write(&self, content: &[u8]) -> Result<CasRef, StoreError> {
        let reference = CasRef { hash: Hash::of(content), bytes: content.len() as u64 };
        let file = self.file_of(reference.hash);
        self.keep(reference.hash, &file, content).map_err(|e| {
            StoreError::unavailable(format!("cannot write payload {reference} to {}: {e}", file.display()))
        })?;
        Ok(reference)
    }

    /// Writes a payload. A file with its final name is always whole: it is synced before the rename, and the folder
    /// is synced after it.
    fn keep(&self, hash: Hash, file: &Path, content: &[u8]) -> io::Result<()> {
        let shelf = self.shelf_of(hash);
        self.make_shelf(hash, &shelf)?;
        let _changing = self.changing[usize::from(hash.0[0])].lock();
        if is_whole(file, content) {
            // Renews the file's age, as if it had just been written: an event that refers to it may follow.
            File::options().write(true).open(file)?.set_modified(now())?;
        } else {
            // Removed on drop unless it was renamed.
            let mut temporary = tempfile::Builder::new().prefix(".new-").tempfile_in(&shelf)?;
            temporary.write_all(content)?;
            temporary.as_file().sync_all()?;
            temporary.persist(file).map_err(|e| e.error)?;
        }
        // Also when the file was there: the process that wrote it may not have synced it yet.
        sync_folder(&shelf)
    }

    fn list(&self, min_age: Duration, after: Option<Hash>, limit: usize) -> io::Result<Vec<Hash>> {
        let mut found = Vec::new();
        for shelf in after.map_or(0, |hash| hash.0[0])..=u8::MAX {
            let entries = match fs::read_dir(self.folder.join(format!("{shelf:02x}"))) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            let mut on_shelf = Vec::new();
            for entry in entries {
                let entry = entry?;
                // Files that are still being written have names that are no hash.
                let hash: Option<Hash> =
                    entry.file_name().to_str().and_then(|hex| format!("sha256:{hex}").parse().ok());
                on_shelf.extend(hash.filter(|hash| after.is_none_or(|after| *hash > after)));
            }
            on_shelf.sort_unstable();
            for hash in on_shelf {
                if found.len() == limit {
                    return Ok(found);
                }
                if is_aged(&self.file_of(hash), min_age)? {
                    found.push(hash);
                }
            }
        }
        Ok(found)
    }

    fn take_away(&self, hash: Hash, min_age: Duration) -> io::Result<bool> {
        // No other thread renews it between the check and the removal.
        let _changing = self.changing[usize::from(hash.0[0])].lock();
        let file = self.file_of(hash);
        if !is_aged(&file, min_age)? {
            return Ok(false);
        }
        fs::remove_file(&file)?;
        Ok(true)
    }

    fn cannot_list(&self, error: &io::Error) -> StoreError {
        StoreError::unavailable(format!("cannot list the payloads in {}: {error}", self.folder.display()))
    }

    fn make_shelf(&self, hash: Hash, shelf: &Path) -> io::Result<()> {
        // Held across the syncs, so that no caller uses a folder whose name could still be lost.
        let mut shelves = self.shelves.lock();
        let known = &mut shelves[usize::from(hash.0[0])];
        if !*known {
            private::create_folder(shelf)?;
            sync_folder(&self.folder)?;
            sync_folder(self.folder.parent().unwrap_or(&self.folder))?;
            *known = true;
        }
        Ok(())
    }

    pub(crate) fn read(&self, reference: CasRef) -> Result<Bytes, StoreError> {
        let file = self.file_of(reference.hash);
        let content = match fs::read(&file) {
            Ok(content) => content,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::unknown("payload", reference));
            }
            Err(e) => {
                let message = format!("cannot read payload {reference} from {}: {e}", file.display());
                return Err(StoreError::unavailable(message));
            }
        };
        if Hash::of(&content) != reference.hash {
            let message = format!("{} is not the content of {reference}", file.display());
            return Err(StoreError::Corrupt(message));
        }
        Ok(content.into())
    }
}

#[async_trait]
impl Cas for DiskCas {
    async fn put(&self, content: Bytes) -> Result<CasRef, StoreError> {
        let cas = self.clone();
        blocking(move || cas.write(&content)).await
    }

    async fn get(&self, reference: CasRef) -> Result<Bytes, StoreError> {
        let cas = self.clone();
        blocking(move || cas.read(reference)).await
    }

    async fn aged(
        &self,
        min_age: Duration,
        after: Option<Hash>,
        limit: usize,
    ) -> Result<Vec<Hash>, StoreError> {
        let cas = self.clone();
        blocking(move || cas.list(min_age, after, limit).map_err(|e| cas.cannot_list(&e))).await
    }

    async fn remove(&self, hash: Hash, min_age: Duration) -> Result<bool, StoreError> {
        let cas = self.clone();
        blocking(move || {
            cas.take_away(hash, min_age).map_err(|e| {
                let file = cas.file_of(hash);
                StoreError::unavailable(format!("cannot remove payload {}: {e}", file.display()))
            })
        })
        .await
    }
}

/// Whether the file already holds the content. If it is damaged, the caller writes it again from `content`.
fn is_whole(file: &Path, content: &[u8]) -> bool {
    fs::read(file).is_ok_and(|stored| stored == content)
}

/// Whether the file is at least `min_age` old by the machine's clock, which also stamps files. A missing file is not.
fn is_aged(file: &Path, min_age: Duration) -> io::Result<bool> {
    match fs::metadata(file) {
        Ok(about) => Ok(now().duration_since(about.modified()?).unwrap_or_default() >= min_age),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

#[expect(clippy::disallowed_methods, reason = "files carry the machine's time, not that of runs")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(e) => Err(StoreError::unavailable(format!("the CAS was interrupted: {e}"))),
    }
}
