//! Checks of names.

use crate::limits;
use crate::problem::{At, Problems};

pub(super) fn check_node_id(id: &str, at: &At<'_>, problems: &mut Problems) {
    let mut bytes = id.bytes();
    let starts_well = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let goes_on_well = bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !(starts_well && goes_on_well && id.len() <= limits::NODE_ID_BYTES_MAX) {
        let shown: String = id.chars().take(80).collect();
        let hint = format!(
            "an id is a letter or `_`, then letters, digits, `_` and `-`, at most {} in all",
            limits::NODE_ID_BYTES_MAX
        );
        problems.add_at_key(at, format!("`{shown}` is not a node id"), Some(hint));
    }
}

pub(super) fn check_workflow_name(name: &str, at: &At<'_>, problems: &mut Problems) {
    if !is_name(name) || name.len() > limits::NAME_BYTES_MAX {
        let shown: String = name.chars().take(80).collect();
        let hint = format!(
            "a name is made of letters, digits, `_`, `-`, `.` and `/`, at most {}",
            limits::NAME_BYTES_MAX
        );
        problems.add(at, format!("`{shown}` is not a name"), Some(hint));
    }
}

/// Checks the name of a secret. It can be a file name, so it must not lead out of its folder.
pub(super) fn check_secret(name: &str, at: &At<'_>, problems: &mut Problems) {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    let is_good = (1..=limits::NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(good);
    if !is_good || name.starts_with('.') {
        let shown: String = name.chars().take(80).collect();
        let hint =
            "it is made of letters, digits, `_`, `-` and `.`, at most 128, and does not begin with `.`";
        problems.add(at, format!("`{shown}` is not the name of a secret"), Some(hint.to_owned()));
    }
}

fn is_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"_-./".contains(&b);
    !name.is_empty() && name.bytes().all(good)
}

/// The name of a child that was written without one. A long name is cut at the front, because its end tells children
/// apart.
pub(super) fn child_name(parent: &str, id: &str) -> String {
    let name = format!("{parent}/{id}");
    let surplus = name.len().saturating_sub(limits::NAME_BYTES_MAX);
    // Both parts are ASCII if they are valid names; if not, a problem is already reported.
    name.get(surplus..).unwrap_or(id).to_owned()
}
