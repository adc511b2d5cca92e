//! Payloads on disk: each is whole or absent, and checked when it is read.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use switchyard_archive_sqlite::DataFolder;
use switchyard_core::CasRef;
use switchyard_store::{Cas, StoreError};

fn file_of(dir: &Path, reference: CasRef) -> PathBuf {
    let hex = reference.hash.hex();
    dir.join("cas").join(&hex[..2]).join(hex)
}

#[tokio::test]
async fn a_payload_is_a_file_named_by_its_hash_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let cas = DataFolder::open(dir.path()).unwrap().cas();
    let reference = cas.put(Bytes::from_static(b"{\"a\": 1}")).await.unwrap();
    let file = file_of(dir.path(), reference);
    assert_eq!(fs::read(&file).unwrap(), b"{\"a\": 1}");
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
}

#[tokio::test]
async fn a_damaged_payload_is_refused_and_healed_by_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let cas = DataFolder::open(dir.path()).unwrap().cas();
    let content = Bytes::from_static(b"the content");
    let reference = cas.put(content.clone()).await.unwrap();
    for damage in [&b"the c0ntent"[..], b"the con", b""] {
        fs::write(file_of(dir.path(), reference), damage).unwrap();
        let damaged = cas.get(reference).await.unwrap_err();
        assert!(matches!(damaged, StoreError::Corrupt(_)), "{damaged:?}");
        assert!(damaged.to_string().contains(&reference.to_string()), "{damaged}");
        cas.put(content.clone()).await.unwrap();
        assert_eq!(cas.get(reference).await.unwrap(), content);
    }
}

#[tokio::test]
async fn a_payload_that_is_put_again_is_young_again() {
    let dir = tempfile::tempdir().unwrap();
    let cas = DataFolder::open(dir.path()).unwrap().cas();
    let (kept, left) = (cas.put("kept".into()).await.unwrap(), cas.put("left".into()).await.unwrap());
    for reference in [kept, left] {
        let file = fs::File::options().write(true).open(file_of(dir.path(), reference)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    cas.put("kept".into()).await.unwrap();
    let hour = Duration::from_secs(3600);
    assert_eq!(cas.aged(hour, None, 10).await.unwrap(), [left.hash]);
    assert!(!cas.remove(kept.hash, hour).await.unwrap());
    assert!(cas.remove(left.hash, hour).await.unwrap());
}

#[tokio::test]
async fn a_cas_that_cannot_be_written_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let cas = DataFolder::open(dir.path()).unwrap().cas();
    fs::write(dir.path().join("cas"), "in the way").unwrap();
    let refused = cas.put(Bytes::from_static(b"x")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    assert!(refused.to_string().starts_with("cannot write payload cas://sha256:"), "{refused}");
}
