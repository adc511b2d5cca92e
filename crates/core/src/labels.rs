//! Labels of a run: words that its author chose to find it by.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels by key, in the order of their keys.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// How many labels a run may have.
pub const LABELS_MAX: usize = 16;

/// The longest key, in bytes.
pub const LABEL_KEY_BYTES_MAX: usize = 63;

/// The longest value, in bytes.
pub const LABEL_VALUE_BYTES_MAX: usize = 256;

/// Why labels are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLabel {
    #[error("{count} labels; a run may have {LABELS_MAX}")]
    TooMany { count: usize },
    #[error(
        "`{key}` is not the key of a label: a letter or digit, then letters, digits, `_`, `-`, `.`, at most \
         {LABEL_KEY_BYTES_MAX} of them"
    )]
    Key { key: String },
    #[error("label `{key}` is empty")]
    Empty { key: String },
    #[error("label `{key}` has {bytes} bytes; it may have {LABEL_VALUE_BYTES_MAX}")]
    TooLong { key: String, bytes: usize },
    #[error("label `{key}` has a control character in it")]
    Control { key: String },
}

/// Refuses labels that a run may not have.
pub fn check_labels(labels: &Labels) -> Result<(), BadLabel> {
    if labels.len() > LABELS_MAX {
        return Err(BadLabel::TooMany { count: labels.len() });
    }
    labels.iter().try_for_each(|(key, value)| check_label(key, value))
}

fn check_label(key: &str, value: &str) -> Result<(), BadLabel> {
    check_label_key(key)?;
    let key = || key.to_owned();
    match value {
        "" => Err(BadLabel::Empty { key: key() }),
        _ if value.len() > LABEL_VALUE_BYTES_MAX => Err(BadLabel::TooLong { key: key(), bytes: value.len() }),
        _ if value.chars().any(char::is_control) => Err(BadLabel::Control { key: key() }),
        _ => Ok(()),
    }
}

pub fn check_label_key(key: &str) -> Result<(), BadLabel> {
    let starts_well = key.starts_with(|c: char| c.is_ascii_alphanumeric());
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match starts_well && key.len() <= LABEL_KEY_BYTES_MAX && key.chars().all(word) {
        true => Ok(()),
        false => Err(BadLabel::Key { key: key.to_owned() }),
    }
}

/// The labels of a child: its own, and those of its parent that it has room for.
pub fn inherit(own: &Labels, parent: &Labels) -> Labels {
    let mut labels = own.clone();
    for (key, value) in parent {
        if labels.len() < LABELS_MAX && !labels.contains_key(key) {
            labels.insert(key.clone(), value.clone());
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[test]
    fn what_a_label_may_be() {
        assert_eq!(check_labels(&labels(&[("team", "search"), ("a.b-c_1", "Zürich")])), Ok(()));
        for (key, value) in [("", "x"), ("-a", "x"), ("a b", "x"), ("a", ""), ("a", "x\ny"), ("a=b", "x")] {
            assert!(check_labels(&labels(&[(key, value)])).is_err(), "{key:?}={value:?}");
        }
        let long = "x".repeat(LABEL_VALUE_BYTES_MAX + 1);
        assert!(check_labels(&labels(&[("a", &long)])).is_err());
        let many: Labels = (0..17).map(|n| (format!("k{n}").into(), "v".into())).collect();
        assert_eq!(check_labels(&many), Err(BadLabel::TooMany { count: 17 }));
    }

    #[test]
    fn a_child_keeps_its_own_label_and_never_has_too_many() {
        let parent: Labels = (0..16).map(|n| (format!("p{n}").into(), "parent".into())).collect();
        let inherited = inherit(&labels(&[("p0", "own"), ("q", "own")]), &parent);
        assert_eq!(inherited.len(), LABELS_MAX);
        assert_eq!((&*inherited["p0"], &*inherited["q"]), ("own", "own"));
    }
}
