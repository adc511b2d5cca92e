//! A full disk causes a clear error and loses no run.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use switchyard_archive_sqlite::{DataFolder, Options, SqliteArchive};
use switchyard_conformance::archive::fixtures::{History, accepted, node_succeeded, run_id};
use switchyard_core::Hash;
use switchyard_store::{Cas, Definitions, Journal, RunIndex, StoreError};

#[tokio::test]
async fn a_full_file_stops_the_archive_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("switchyard.db");
    let archive =
        SqliteArchive::open_custom(&path, Options { pages_max: Some(60), ..Options::default() }).unwrap();
    let acknowledged = fill(&archive).await;
    assert!(acknowledged > 10, "some of it fitted: {acknowledged}");
    stays_closed(&archive).await;
    assert_eq!(archive.unfinished().await.unwrap().len(), acknowledged, "reading goes on");
    drop(archive);

    let archive = SqliteArchive::open(&path).unwrap();
    assert_eq!(archive.unfinished().await.unwrap().len(), acknowledged);
    History::of(run_id(1_000_000)).put(&archive, [accepted()]).await;
}

#[tokio::test]
async fn everybody_in_the_group_that_failed_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("switchyard.db");
    let archive =
        SqliteArchive::open_custom(&path, Options { pages_max: Some(60), ..Options::default() }).unwrap();
    let acks: Vec<_> =
        (0..5_000).map(|n| archive.append(vec![History::of(run_id(n)).next(accepted())])).collect();
    let mut acknowledged = 0;
    let mut refused = 0;
    for ack in acks {
        match ack.await {
            Ok(()) => {
                assert_eq!(refused, 0, "nothing is taken after the first refusal");
                acknowledged += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0);
    assert_eq!(archive.unfinished().await.unwrap().len(), acknowledged);
}

/// The same on a disk that is really full. The test needs permission to mount, and is skipped without it.
#[tokio::test]
async fn a_full_disk_stops_the_archive_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path()) else { return };
    drop(SqliteArchive::open(disk.path.join("closed.db")).unwrap());
    let folder = DataFolder::open(disk.path.join("data")).unwrap();
    let archive = folder.archive().unwrap();
    let acknowledged = fill(&archive).await;
    stays_closed(&archive).await;
    assert_eq!(archive.unfinished().await.unwrap().len(), acknowledged);

    let refused = folder.cas().put(vec![7; 2_000_000].into()).await.unwrap_err();
    assert!(refused.to_string().contains("No space left"), "{refused}");
    drop((archive, folder));

    // The archive cannot be opened either while the disk is full.
    let ballast = disk.fill();
    let refused = DataFolder::open(disk.path.join("data")).unwrap_err().to_string();
    assert!(refused.ends_with("lock: No space left on device (os error 28)"), "{refused}");
    for name in ["new.db", "closed.db"] {
        let refused = SqliteArchive::open(disk.path.join(name)).unwrap_err().to_string();
        assert!(refused.contains("disk is full"), "{refused}");
    }
    std::fs::remove_file(ballast).unwrap();

    disk.enlarge();
    let archive = DataFolder::open(disk.path.join("data")).unwrap().archive().unwrap();
    assert_eq!(archive.unfinished().await.unwrap().len(), acknowledged);
    History::of(run_id(1_000_000)).put(&archive, [accepted()]).await;
}

/// Accepts runs until one is refused; returns how many were acknowledged.
async fn fill(archive: &SqliteArchive) -> usize {
    for n in 0..100_000 {
        let events = History::of(run_id(n)).all([accepted(), node_succeeded("fetch")]);
        if let Err(refused) = archive.append(events).await {
            let text = refused.to_string();
            assert!(text.contains("switchyard.db: ") && text.contains("disk is full"), "{text}");
            match refused {
                StoreError::Unavailable(_) => {
                    let last = format!("nothing after event {} was accepted", 2 * n);
                    assert!(text.starts_with("cannot write to ") && text.ends_with(&last), "{text}");
                }
                // The disk was full when the commit was written.
                other => assert!(matches!(other, StoreError::OutcomeUnknown(_)), "{other:?}"),
            }
            return n as usize;
        }
    }
    panic!("the disk is larger than it should be");
}

/// The archive refuses even writes that would fit: they may depend on lost events.
async fn stays_closed(archive: &SqliteArchive) {
    let refused = archive.append(vec![]).await.unwrap_err();
    assert!(refused.to_string().contains("disk is full"), "{refused}");
    let refused = archive.put_definition(Hash::of(b"{}"), "{}".into()).await.unwrap_err();
    assert!(refused.to_string().contains("disk is full"), "{refused}");
}

struct SmallDisk<'a> {
    path: &'a Path,
}

impl<'a> SmallDisk<'a> {
    fn mount(path: &'a Path) -> Option<Self> {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(path).output();
        mounted.is_ok_and(|done| done.status.success()).then_some(Self { path })
    }

    /// Writes until nothing more fits.
    fn fill(&self) -> PathBuf {
        let ballast = self.path.join("ballast");
        let mut file = File::create(&ballast).unwrap();
        while file.write_all(&[7; 512]).is_ok() {}
        ballast
    }

    fn enlarge(&self) {
        let done = Command::new("mount").args(["-o", "remount,size=20m"]).arg(self.path).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path).status();
    }
}
