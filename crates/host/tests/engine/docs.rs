//! Every example in the language reference does what it says.
//!
//! A block whose first line is `# run: input=… output=…` is run; `fails=CODE` must fail with that code;
//! `# validate` must compile; `# error: …` must not, and must say that.

use std::collections::BTreeMap;

use serde_json::Value;
use switchyard_core::run::RunStatus;
use switchyard_lang::Program;

use crate::support::{RunViewExt, TestEngine};

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/language.md");

fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.trim_end()) {
            (None, "```yaml") => open = Some((number + 2, Vec::new())),
            (Some(_), "```") => {
                let (at, lines) = open.take().unwrap();
                blocks.push((at, lines.join("\n") + "\n"));
            }
            (Some((_, lines)), _) => lines.push(line),
            (None, _) => {}
        }
    }
    blocks
}

/// `input={…} output={…}`: JSON values, one after the other.
fn expectations(text: &str) -> BTreeMap<&str, &str> {
    let at = |key: &str| text.find(&format!("{key}=")).map(|at| (at, at + key.len() + 1));
    let mut starts: Vec<(usize, usize)> =
        ["input", "output", "fails"].iter().filter_map(|key| at(key)).collect();
    starts.sort_unstable();
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|((start, value), end)| (&text[*start..*value - 1], text[*value..end].trim()))
        .collect()
}

#[tokio::test]
async fn the_language_reference_is_true() {
    let text = std::fs::read_to_string(REFERENCE).unwrap();
    let fixture = TestEngine::working().await;
    let mut run = 0;
    for (line, block) in blocks(&text) {
        let first = block.lines().next().unwrap_or_default();
        let name = format!("docs/reference/language.md:{line}");
        if let Some(expected) = first.strip_prefix("# run:") {
            check_run(&fixture, &name, &block, &expectations(expected)).await;
            run += 1;
        } else if let Some(expected) = first.strip_prefix("# error:") {
            let problems = Program::compile_text(&name, block.as_bytes()).expect_err(&name).to_string();
            assert!(problems.contains(expected.trim()), "{name}: {problems}");
        } else if first.starts_with("# validate") {
            Program::compile_text(&name, block.as_bytes())
                .unwrap_or_else(|problems| panic!("{name}: {problems}"));
        } else {
            assert!(first.starts_with("# fragment"), "{name}: what is to be done with `{first}`?");
        }
    }
    assert!(run > 10, "only {run} examples were run");
}

async fn check_run(fixture: &TestEngine, name: &str, block: &str, expected: &BTreeMap<&str, &str>) {
    let json =
        |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|e| panic!("{name}: {text}: {e}"));
    let view = fixture.run(block, json(expected["input"])).await;
    match expected.get("fails") {
        Some(code) => {
            assert_eq!((view.status(), view.error_code()), (RunStatus::Failed, (*code).to_owned()), "{name}");
        }
        None => {
            assert_eq!(view.status(), RunStatus::Succeeded, "{name}: {:?}", view.error);
            assert_eq!(view.output(), json(expected["output"]), "{name}");
        }
    }
}
