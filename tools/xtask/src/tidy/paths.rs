//! Checks that paths and symbols that documents name in backticks exist.

use std::collections::HashSet;

use super::{Finding, Repository, prose};

/// Folders whose paths documents give from the root of the repository.
const ROOTS: [&str; 6] = ["crates/", "docs/", "examples/", "python/", "tools/", "benches/"];

/// Documents about the code, whose symbols must exist. Others also name types of other programs.
const ABOUT_CODE: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/internals/", "docs/decisions/"];

pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let words = words(repository)?;
    let mut findings = Vec::new();
    for page in repository.with_suffix(&[".md"]) {
        let text = repository.text(page)?;
        let about_code = ABOUT_CODE.iter().any(|start| page.starts_with(start));
        for (line, quoted) in prose(&text).flat_map(|(line, text)| quoted(text).map(move |word| (line, word)))
        {
            if is_path(quoted) && !repository.has(quoted) && !is_generated(quoted) {
                findings.push(Finding::new(page, line, format!("`{quoted}` does not exist")));
            } else if about_code && let Some(missing) = unknown_symbol(quoted, &words) {
                findings.push(Finding::new(page, line, format!("`{missing}` is not in the sources")));
            }
        }
    }
    Ok(findings)
}

fn is_path(text: &str) -> bool {
    ROOTS.iter().any(|root| text.starts_with(root)) && !text.contains([' ', '*', '{', '…', '<'])
}

/// Whether a path is created by a test run, or is a pattern.
fn is_generated(path: &str) -> bool {
    path.contains("/proptest-regressions/") || path.contains("NNNN")
}

/// The texts between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns a symbol such as `Run::apply` if a part of it is in no source file.
fn unknown_symbol<'a>(quoted: &'a str, words: &HashSet<String>) -> Option<&'a str> {
    let is_symbol = quoted.contains("::") && quoted.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
    let missing = quoted.split("::").any(|part| !part.is_empty() && !words.contains(part));
    (is_symbol && missing).then_some(quoted)
}

/// Every identifier of the Rust sources.
fn words(repository: &Repository) -> anyhow::Result<HashSet<String>> {
    let mut words = HashSet::new();
    for file in repository.with_suffix(&[".rs", ".toml"]) {
        let text = repository.text(file)?;
        let split = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.extend(split.filter(|word| !word.is_empty()).map(str::to_owned));
    }
    // Names that documents use and that need not be in a source file.
    words.extend(["std", "tokio", "core"].map(str::to_owned));
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found_by_their_parts() {
        let words = HashSet::from(["Run".to_owned(), "apply".to_owned()]);
        assert_eq!(unknown_symbol("Run::apply", &words), None);
        assert_eq!(unknown_symbol("Run::aply", &words), Some("Run::aply"));
        assert_eq!(unknown_symbol("a sentence", &words), None);
    }
}
