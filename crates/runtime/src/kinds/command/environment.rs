//! The environment of a program: a few variables of the worker, never all of them, because the worker's
//! environment holds its credentials.

use std::env::vars_os;
use std::ffi::{OsStr, OsString};

/// Variables that are always passed on: programs need them to find files, other programs and their language. A `*` at
/// the end matches any rest.
const ALWAYS: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"];

/// The variables of this process that a program gets, including those in `allowed`.
pub(super) fn passed_on(allowed: &[String]) -> impl Iterator<Item = (OsString, OsString)> {
    vars_os().filter(|(name, _)| {
        let mut patterns = ALWAYS.into_iter().chain(allowed.iter().map(String::as_str));
        patterns.any(|pattern| matches(pattern, name))
    })
}

fn matches(pattern: &str, name: &OsStr) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.as_encoded_bytes().starts_with(start.as_bytes()),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_whole_or_by_their_beginning() {
        for (pattern, name, expected) in [
            ("PATH", "PATH", true),
            ("PATH", "PATHS", false),
            ("LC_*", "LC_ALL", true),
            ("LC_*", "LANG", false),
            ("*", "ANYTHING", true),
        ] {
            assert_eq!(matches(pattern, OsStr::new(name)), expected, "{pattern} {name}");
        }
    }
}
