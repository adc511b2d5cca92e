//! Checks the links of Markdown files: targets and anchors exist, and every page of the book is in its table of
//! contents.

use std::collections::HashMap;

use super::{Finding, Repository, prose};

const SUMMARY: &str = "docs/SUMMARY.md";

pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut anchors: HashMap<String, Vec<String>> = HashMap::new();
    for page in repository.with_suffix(&[".md"]) {
        anchors.insert(page.to_owned(), anchors_of(&repository.text(page)?));
    }
    for page in repository.with_suffix(&[".md"]) {
        let text = repository.text(page)?;
        for (line, target) in prose(&text).flat_map(|(line, text)| targets(text).map(move |to| (line, to))) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if let Some(message) = broken(repository, &anchors, page, target) {
                findings.push(Finding::new(page, line, message));
            }
        }
    }
    findings.extend(missing_from_summary(repository)?);
    Ok(findings)
}

fn broken(
    repository: &Repository,
    anchors: &HashMap<String, Vec<String>>,
    page: &str,
    target: &str,
) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let file = if path.is_empty() { page.to_owned() } else { resolve(page, path) };
    if !repository.has(&file) {
        return Some(format!("the link leads to {file}, which does not exist"));
    }
    let anchor = anchor?;
    let known = anchors.get(&file)?;
    (!known.iter().any(|known| known == anchor)).then(|| format!("{file} has no heading for #{anchor}"))
}

fn missing_from_summary(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let summary = repository.text(SUMMARY)?;
    let listed: Vec<String> = targets(&summary).map(|target| resolve(SUMMARY, target)).collect();
    let is_page = |page: &&str| page.starts_with("docs/") && *page != SUMMARY;
    let pages = repository.with_suffix(&[".md"]).filter(is_page);
    Ok(pages
        .filter(|page| !listed.iter().any(|known| known == page))
        .map(|page| Finding::new(page, 0, format!("the page is not in {SUMMARY}")))
        .collect())
}

/// The targets of the links in a text.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.trim())
}

/// Resolves a path relative to a page, from the root of the repository.
fn resolve(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors that GitHub and mdBook generate for headings.
fn anchors_of(text: &str) -> Vec<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    headings.map(|heading| anchor(heading.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_from_their_page() {
        assert_eq!(resolve("docs/guide/a.md", "../reference/b.md"), "docs/reference/b.md");
        assert_eq!(resolve("README.md", "docs/a.md"), "docs/a.md");
    }

    #[test]
    fn anchors_are_made_as_readers_expect() {
        assert_eq!(anchor("What is kept, and `where`?"), "what-is-kept-and-where");
    }

    #[test]
    fn every_link_of_a_line_is_found() {
        let found: Vec<&str> = targets("see [a](x.md) and [b](y.md#z)").collect();
        assert_eq!(found, ["x.md", "y.md#z"]);
    }
}
