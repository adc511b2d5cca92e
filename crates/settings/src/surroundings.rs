//! Reads the environment of the process.

use std::collections::BTreeMap;
use std::env::vars_os;

/// Environment variables by name. A value that is not UTF-8 is `None`.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, Option<String>>);

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()))
        };
        Self(vars_os().filter_map(text).collect())
    }

    /// The value of a variable. A variable with an empty value counts as not set.
    pub(crate) fn get(&self, name: &str) -> Option<Option<&str>> {
        let value = self.0.get(name)?.as_deref();
        (value != Some("")).then_some(value)
    }

    /// The variables whose names begin with `prefix`, by the rest of the name. Empty values are left out.
    pub fn with_prefix(&self, prefix: &str) -> BTreeMap<String, String> {
        let named = self.0.iter().filter_map(|(name, value)| {
            let rest = name.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
            Some((rest.to_owned(), value.clone().filter(|value| !value.is_empty())?))
        });
        named.collect()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self(variables.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))).into())
    }
}

/// Whether `NO_COLOR` turns colours off (<https://no-color.org>).
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The `AWS_*` variables, which AWS clients read.
pub fn aws() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    vars_os().filter_map(text).filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty()).collect()
}

/// The name of the user who runs the command, recorded in histories.
pub fn user() -> Option<String> {
    let named = ["USER", "LOGNAME"].into_iter().find_map(std::env::var_os);
    named.and_then(|name| name.into_string().ok()).filter(|name| !name.is_empty())
}
