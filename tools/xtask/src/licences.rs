//! Checks the licences of all dependencies: the same rule as `deny.toml`, without a tool to install.

use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// The licences that we accept. `deny.toml` has the same list.
const ALLOWED: [&str; 12] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSL-1.0",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
];

pub(crate) fn check() -> anyhow::Result<()> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .context("`cargo metadata` could not be started")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let refused: Vec<String> = packages.iter().filter_map(refusal).collect();
    if !refused.is_empty() {
        bail!("licences that are not on the list:\n{}", refused.join("\n"));
    }
    Ok(())
}

fn refusal(package: &Value) -> Option<String> {
    let licence = package["license"].as_str().unwrap_or("none given");
    (!is_allowed(licence)).then(|| format!("  {} {}: {licence}", package["name"], package["version"]))
}

/// Whether one alternative of an SPDX expression has only allowed parts.
fn is_allowed(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    flat.split(" OR ").any(|choice| choice.split(" AND ").all(|part| ALLOWED.contains(&part.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_alternative_is_enough() {
        assert!(is_allowed("MIT OR GPL-3.0"));
        assert!(is_allowed("Apache-2.0/MIT"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_allowed("GPL-3.0"));
        assert!(!is_allowed("MIT AND GPL-3.0"));
        assert!(!is_allowed("none given"));
    }
}
