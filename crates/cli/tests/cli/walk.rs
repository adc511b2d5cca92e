//! Walks the README and the tutorials as a reader does: runs every command of every `console` block in a fresh folder
//! with the built binary, and compares the output.
//!
//! - A block that begins with "Save this as `FILE`" in the paragraph before it is written to that file.
//! - A line after `$ ` is a command. The lines that follow are what it prints on stdout; a command that prints something
//!   that the page does not show has to succeed all the same.
//! - `…` stands for any text; on a line of its own, for any lines. `run_…` and `appr_…` in a command stand for the run
//!   and the approval that the page saw last.
//! - `switchyard up`, `switchyard dev` and commands that end in ` &` go on until the end of the page.

mod page;
mod shell;

use std::path::{Path, PathBuf};

use page::Step;
use shell::Shell;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Walks a page, and returns how many commands it has.
fn walk(page: &str) -> usize {
    let text = std::fs::read_to_string(repository().join(page)).unwrap();
    let steps = page::steps(&text);
    let mut shell = Shell::new(page);
    for step in &steps {
        match step {
            Step::Save { file, text } => shell.save(file, text),
            Step::Run { command, expected } => shell.run(command, expected),
        }
    }
    steps.iter().filter(|step| matches!(step, Step::Run { .. })).count()
}

#[test]
fn the_readme_is_true() {
    assert!(walk("README.md") >= 5);
}

#[test]
fn getting_started_is_true() {
    assert!(walk("docs/guide/getting-started.md") >= 10);
}

#[test]
fn the_guide_to_schedules_is_true() {
    assert!(walk("docs/guide/schedules.md") >= 5);
}

/// Every page of the guide with commands and outputs, new pages included.
#[test]
fn every_other_page_is_true() {
    let known = ["getting-started.md", "schedules.md"];
    for entry in std::fs::read_dir(repository().join("docs/guide")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !known.contains(&name.as_str()) {
            walk(&format!("docs/guide/{name}"));
        }
    }
}
