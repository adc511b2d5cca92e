//! Checks line lengths, placeholders, and calls that have a replacement.

use super::{Finding, Repository, prose};

const MARKDOWN_MAX: usize = 160;
const CODE_MAX: usize = 160;

/// Written in two parts, so that this file does not contain them.
const PLACEHOLDERS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("todo", "!("),
    concat!("unimpl", "emented!("),
];

/// A call, the files it is banned in, and its replacement.
const BANNED: [(&str, &str, &str); 4] = [
    (concat!("redis.call('KE", "YS'"), ".lua", "names are derivable; use SCAN in tools"),
    (
        concat!("FLUSH", "ALL\""),
        "/src/",
        "tests isolate by prefix; only the fault test's own server is flushed",
    ),
    (concat!("pickle", ".loads"), ".py", "typed formats only: unpickling runs code"),
    (concat!("thread::sl", "eep("), "/tests/", "wait for a signal or move the injected clock"),
];

/// Folders that use or describe the banned calls on purpose.
const EXEMPT: [&str; 3] = ["tools/chaos/", "tools/test-servers/", "tools/xtask/"];

pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in repository.with_suffix(&[".md"]) {
        let text = repository.text(file)?;
        let long =
            prose(&text).filter(|(_, line)| !line.starts_with('|') && line.chars().count() > MARKDOWN_MAX);
        let long =
            long.map(|(line, _)| Finding::new(file, line, format!("longer than {MARKDOWN_MAX} characters")));
        findings.extend(long);
    }
    for file in repository.with_suffix(&[".rs", ".lua", ".py"]) {
        let text = repository.text(file)?;
        for (index, line) in text.lines().enumerate() {
            findings.extend(findings_of(file, index + 1, line));
        }
    }
    Ok(findings)
}

fn findings_of(file: &str, number: usize, line: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    // A literal cannot be broken without changing it, and transcripts in tests are literals.
    if line.chars().count() > CODE_MAX && !line.contains('"') && !file.contains("/tests/") {
        found.push(Finding::new(file, number, format!("longer than {CODE_MAX} characters")));
    }
    if let Some(placeholder) = PLACEHOLDERS.iter().find(|placeholder| line.contains(**placeholder)) {
        found.push(Finding::new(file, number, format!("`{placeholder}` is a placeholder")));
    }
    let exempt = EXEMPT.iter().any(|start| file.starts_with(start));
    for (call, place, replacement) in BANNED.iter().filter(|(call, ..)| !exempt && line.contains(call)) {
        if file.contains(place) {
            found.push(Finding::new(file, number, format!("`{call}` is banned: {replacement}")));
        }
    }
    found
}
