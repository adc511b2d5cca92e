//! Every format in which events were ever stored still loads.
//!
//! A file of `golden/` holds one body per kind of event, as it stood in `events.body`. Files are added, never edited:
//! when the stored format changes, the newest file is copied under the next number and changed there.

use std::fs;
use std::path::PathBuf;

use switchyard_conformance::archive::fixtures::{
    every_kind, every_operation, every_wait, labelled, later_acceptances, later_closings, named_child_end,
};
use switchyard_core::run::EventKind;

const NEWEST: &str = "events.0007.jsonl";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn today() -> Vec<EventKind> {
    let kinds = every_kind().into_iter().chain(every_wait()).chain(later_acceptances());
    kinds
        .chain(every_operation())
        .chain(later_closings())
        .chain(labelled())
        .chain([named_child_end()])
        .collect()
}

#[test]
fn what_was_ever_stored_still_means_the_same() {
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let kinds: Vec<EventKind> = text
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}\n{line}", path.display()))
            })
            .collect();
        assert!(!kinds.is_empty(), "{} is empty", path.display());
        for (stored, line) in kinds.iter().zip(text.lines()) {
            assert!(today().contains(stored), "{}: this means something else now:\n{line}", path.display());
        }
    }
}

#[test]
fn the_newest_file_is_what_is_written_today() {
    let lines = today().iter().map(|kind| serde_json::to_string(kind).unwrap() + "\n").collect::<String>();
    let golden = fs::read_to_string(folder().join(NEWEST)).unwrap_or_default();
    assert!(golden == lines, "{NEWEST} should be:\n{lines}");
}
