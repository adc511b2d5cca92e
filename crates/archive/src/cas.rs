//! The CAS on disk: `cas/ab/abcdef…`, a file per payload, named by its SHA-256.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use switchyard_core::{CasRef, Hash};
use switchyard_store::{Cas, StoreError};

use crate::folder::FolderLock;

#[derive(Debug, Clone)]
pub struct DiskCas {
    folder: Arc<Path>,
    /// Which of the 256 shelves are known to be on disk, name included.
    shelves: Arc<Mutex<[bool; 256]>>,
    /// Keeps the data folder ours while payloads are being written.
    _lock: Option<Arc<FolderLock>>,
}

impl DiskCas {
    pub(crate) fn new(folder: PathBuf, lock: Option<Arc<FolderLock>>) -> Self {
        Self { folder: folder.into(), shelves: Arc::new(Mutex::new([false; 256])), _lock: lock }
    }

    fn shelf_of(&self, hash: Hash) -> PathBuf {
        self.folder.join(format!("{:02x}", hash.0[0]))
    }

    fn file_of(&self, hash: Hash) -> PathBuf {
        self.shelf_of(hash).join(hash.hex())
    }

    fn write(&self, content: &[u8]) -> Result<CasRef, StoreError> {
        let reference = CasRef { hash: Hash::of(content), bytes: content.len() as u64 };
        let file = self.file_of(reference.hash);
        self.keep(reference.hash, &file, content).map_err(|e| {
            StoreError::unavailable(format!("cannot write payload {reference} to {}: {e}", file.display()))
        })?;
        Ok(reference)
    }

    /// Under its name a file is always whole: it is synced before it gets the name, and the name is synced too.
    fn keep(&self, hash: Hash, file: &Path, content: &[u8]) -> io::Result<()> {
        let shelf = self.shelf_of(hash);
        self.make_shelf(hash, &shelf)?;
        if !is_whole(file, content) {
            // Removed on drop unless it was renamed.
            let mut temporary = tempfile::Builder::new().prefix(".new-").tempfile_in(&shelf)?;
            temporary.write_all(content)?;
            temporary.as_file().sync_all()?;
            temporary.persist(file).map_err(|e| e.error)?;
        }
        // Also when the file was there: whoever wrote it may not have come this far yet.
        sync_folder(&shelf)
    }

    fn make_shelf(&self, hash: Hash, shelf: &Path) -> io::Result<()> {
        // Held across the syncs, so that nobody uses a shelf whose name could still be lost.
        let mut shelves = self.shelves.lock();
        let known = &mut shelves[usize::from(hash.0[0])];
        if !*known {
            fs::create_dir_all(shelf)?;
            sync_folder(&self.folder)?;
            sync_folder(self.folder.parent().unwrap_or(&self.folder))?;
            *known = true;
        }
        Ok(())
    }

    fn read(&self, reference: CasRef) -> Result<Bytes, StoreError> {
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
}

/// Whether the content is there already. A damaged file is written anew: we have the content in hand.
fn is_whole(file: &Path, content: &[u8]) -> bool {
    fs::read(file).is_ok_and(|stored| stored == content)
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
