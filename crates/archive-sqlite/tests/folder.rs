//! One process works in a folder; others get an error that names it, and may read.

use std::fs;
use std::path::Path;

use switchyard_archive_sqlite::{DataFolder, Notice};
use switchyard_conformance::archive::fixtures::{History, accepted, node_started, run_id};
use switchyard_store::{Cas, Journal, RunIndex, StoreError};

#[test]
fn a_folder_in_use_is_refused_with_the_pid() {
    let dir = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(dir.path()).unwrap();
    let refused = DataFolder::open(dir.path()).unwrap_err();
    let expected = StoreError::InUse { path: dir.path().display().to_string(), pid: std::process::id() };
    assert_eq!(refused, expected);
    drop(folder);
    DataFolder::open(dir.path()).unwrap();
}

#[tokio::test]
async fn the_folder_is_held_while_its_archive_or_its_cas_is() {
    let dir = tempfile::tempdir().unwrap();
    let archive = DataFolder::open(dir.path()).unwrap().archive().unwrap();
    DataFolder::open(dir.path()).unwrap_err();
    drop(archive);
    let cas = DataFolder::open(dir.path()).unwrap().cas();
    DataFolder::open(dir.path()).unwrap_err();
    drop(cas);
    DataFolder::open(dir.path()).unwrap();
}

#[test]
fn what_a_dead_process_left_in_the_lock_file_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("lock"), "4000000000 and more").unwrap();
    let folder = DataFolder::open(dir.path()).unwrap();
    let pid = fs::read_to_string(dir.path().join("lock")).unwrap();
    assert_eq!(pid, format!("{}\n", std::process::id()));
    drop(folder);
}

#[test]
fn a_path_that_cannot_be_a_folder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    refused(&file, "it is not a directory");
    refused(&file.join("below"), "it is not a directory");

    fs::create_dir(dir.path().join("data")).unwrap();
    fs::create_dir(dir.path().join("data/lock")).unwrap();
    refused(&dir.path().join("data"), "lock");
}

#[test]
fn a_folder_without_permission_is_named() {
    // The kernel lets no user write here, root included.
    refused(Path::new("/proc/switchyard-test"), "/proc/switchyard-test");
}

fn refused(path: &Path, why: &str) {
    let error = DataFolder::open(path).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(text.starts_with(&format!("cannot use {} as data folder: ", path.display())), "{text}");
    assert!(text.contains(why), "{text}");
}

#[tokio::test]
async fn others_may_look_while_one_works() {
    let dir = tempfile::tempdir().unwrap();
    let archive = DataFolder::open(dir.path()).unwrap().archive().unwrap();
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted()]).await;

    let looking = DataFolder::peek(dir.path()).unwrap().archive().unwrap();
    assert_eq!(looking.run(history.run).await.unwrap().unwrap().last_seq, 1);
    history.put(&archive, [node_started("fetch")]).await;
    assert_eq!(looking.run(history.run).await.unwrap().unwrap().last_seq, 2, "what was acknowledged since");

    let refused = looking.append(vec![history.next(node_started("b"))]).await.unwrap_err();
    assert!(refused.to_string().ends_with("was opened for reading only"), "{refused}");

    // Reading also works after the writer is gone.
    drop(archive);
    assert_eq!(looking.run(history.run).await.unwrap().unwrap().last_seq, 2);
}

#[tokio::test]
async fn looking_into_an_empty_folder_says_so_and_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("nowhere")] {
        let refused = DataFolder::peek(&path).unwrap_err().to_string();
        assert!(refused.contains("there is no switchyard.db in it"), "{refused}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The folder holds inputs, outputs and digests of keys.
#[tokio::test]
async fn nobody_else_may_read_a_folder() {
    use std::os::unix::fs::PermissionsExt;

    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let check = |dir: &Path| {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), expected, "{}", path.display());
        }
    };
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("data");
    let folder = DataFolder::open(&dir).unwrap();
    let (archive, cas) = (folder.archive().unwrap(), folder.cas());
    History::of(run_id(0)).put(&archive, [accepted()]).await;
    let payload = cas.put("large".into()).await.unwrap();
    check(&dir);
    let hex = payload.hash.hex();
    check(&dir.join("cas").join(&hex[..2]));
    drop((folder, archive, cas));
    check(&dir);

    // Permissions as an earlier release set them.
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["", "id", "switchyard.db", "cas"] {
        open(&dir.join(name));
    }
    drop(DataFolder::open(&dir).unwrap());
    check(&dir);

    // If the folder holds other files, other users may have been given access for those.
    fs::write(dir.join("notes.txt"), "").unwrap();
    open(&dir);
    open(&dir.join("switchyard.db"));
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let ear = heard.clone();
    let notice = Notice::new(move |text| ear.lock().unwrap().push(text.to_owned()));
    drop(DataFolder::open_telling(&dir, notice).unwrap());
    assert_eq!((mode(&dir), mode(&dir.join("switchyard.db"))), (0o755, 0o600));
    let heard = heard.lock().unwrap().join("\n");
    assert!(heard.starts_with("warning: ") && heard.contains("may be read by others"), "{heard}");
}
