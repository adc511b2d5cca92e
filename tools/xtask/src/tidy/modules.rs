//! Finds source files that nothing refers to: modules without a declaration, scripts and examples without a mention.

use super::{Finding, Repository};

pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut sources = Vec::new();
    for file in repository.with_suffix(&[".rs"]) {
        sources.push((file, repository.text(file)?));
    }
    let mut findings = Vec::new();
    for (file, _) in &sources {
        let Some(name) = module_name(file) else { continue };
        let declared = |text: &str| {
            [format!("mod {name};"), format!("mod {name} {{"), format!("/{name}.rs\"")]
                .iter()
                .any(|how| text.contains(how))
        };
        let package = package_of(file);
        if !sources.iter().any(|(other, text)| package_of(other) == package && declared(text)) {
            findings.push(Finding::new(file, 0, "no module declares this file"));
        }
    }
    findings.extend(unmentioned(repository, &sources)?);
    Ok(findings)
}

/// The module name of a file, unless cargo finds the file by itself.
fn module_name(file: &str) -> Option<&str> {
    let (folder, name) = file.rsplit_once('/')?;
    let stem = name.strip_suffix(".rs")?;
    let root = matches!(stem, "lib" | "main" | "build");
    let target = ["/tests", "/examples", "/benches", "/bin"].iter().any(|end| folder.ends_with(end));
    match stem {
        "mod" => folder.rsplit_once('/').map(|(_, name)| name),
        stem => (!root && !target).then_some(stem),
    }
}

fn package_of(file: &str) -> &str {
    let mut ends = file.match_indices('/').map(|(index, _)| index);
    let end =
        if file.starts_with("crates/") || file.starts_with("tools/") { ends.nth(1) } else { ends.next() };
    end.map_or(file, |end| &file[..end])
}

/// Lua scripts and examples whose file name is in no source and no document.
fn unmentioned(repository: &Repository, sources: &[(&str, String)]) -> anyhow::Result<Vec<Finding>> {
    let mut texts: Vec<String> = sources.iter().map(|(_, text)| text.clone()).collect();
    for file in repository.with_suffix(&[".md", ".lua", ".py", ".yaml"]) {
        texts.push(repository.text(file)?);
    }
    let mut findings = Vec::new();
    for file in repository.with_suffix(&[".lua"]).chain(repository.with_suffix(&[".yaml", ".py"])) {
        let example = file.starts_with("examples/");
        let name = file.rsplit('/').next().unwrap_or(file);
        let stem = name.trim_end_matches(".lua");
        let wanted = if file.ends_with(".lua") { stem } else { name };
        let checked = example || file.ends_with(".lua");
        if checked && !texts.iter().any(|text| text.contains(wanted)) {
            findings.push(Finding::new(file, 0, "no source and no document mentions this file"));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_named_by_file_or_folder() {
        assert_eq!(module_name("crates/core/src/run/mod.rs"), Some("run"));
        assert_eq!(module_name("crates/core/src/time.rs"), Some("time"));
        assert_eq!(module_name("crates/core/src/lib.rs"), None);
        assert_eq!(module_name("crates/cli/tests/kill.rs"), None);
    }

    #[test]
    fn packages_are_folders_below_crates() {
        assert_eq!(package_of("crates/core/src/lib.rs"), "crates/core");
        assert_eq!(package_of("tools/xtask/src/main.rs"), "tools/xtask");
    }
}
