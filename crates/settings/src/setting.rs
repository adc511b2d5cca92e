//! The metadata of a setting.

use std::any::type_name;

use crate::value::{BadValue, Value};

/// The metadata of a setting: names, default, bounds, documentation.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The key in the settings file; a dot separates table and key.
    pub key: &'static str,
    pub env: &'static str,
    /// A second environment name, which other programs use. `env` wins.
    pub env_also: Option<&'static str>,
    pub flag: Option<Flag>,
    /// The default as text; a setting without a default is optional.
    pub default: Option<&'static str>,
    /// The smallest and the largest value, as text.
    pub min: Option<&'static str>,
    pub max: Option<&'static str>,
    /// Whether the value is masked wherever it is printed.
    pub secret: bool,
    /// The lines of the setting's doc comment.
    pub doc: &'static [&'static str],
    pub(crate) kind: Kind,
}

/// A flag of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    pub long: &'static str,
    /// The name of the flag's value in the help; a switch has none.
    pub value: Option<&'static str>,
    pub on: Scope,
}

/// Which commands take a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Everywhere,
    /// `up`, `api`, and every other command that may look into Redis or Postgres itself
    Stores,
    /// `up` and `api`
    Serving,
    /// `worker`
    Worker,
    /// `up`, `worker`, and every command that carries a run to its end in its own process
    Working,
}

/// The type of a setting, with the type parameter erased.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) expected: &'static str,
    check: fn(&Setting, &str) -> Result<String, BadValue>,
}

impl Kind {
    /// The placeholder in [`Setting::BLANK`]; every entry of the table replaces it.
    const NONE: Self = Self { expected: "", check: |_, _| Ok(String::new()) };

    pub(crate) const fn of<T: Value>() -> Self {
        Self { expected: T::EXPECTED, check: |setting, text| Ok(setting.read::<T>(text)?.show()) }
    }
}

impl Setting {
    /// The base of every entry of the table, for struct update syntax.
    pub(crate) const BLANK: Self = Self {
        key: "",
        env: "",
        env_also: None,
        flag: None,
        default: None,
        min: None,
        max: None,
        secret: false,
        doc: &[],
        kind: Kind::NONE,
    };

    /// Checks the text of a value, and returns it as it is printed.
    pub fn check(&self, text: &str) -> Result<String, BadValue> {
        (self.kind.check)(self, text)
    }

    /// A description of valid values, with the bounds.
    pub fn expected(&self) -> String {
        match (self.min, self.max) {
            (None, None) => self.kind.expected.to_owned(),
            (Some(min), None) => format!("{}, at least {min}", self.kind.expected),
            (None, Some(max)) => format!("{}, at most {max}", self.kind.expected),
            (Some(min), Some(max)) => format!("{}, from {min} to {max}", self.kind.expected),
        }
    }

    /// The first paragraph of the documentation, without the full stop: the help text of the flag.
    pub fn summary(&self) -> String {
        let lines = self.doc.iter().map(|line| line.trim()).take_while(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
    }

    pub(crate) fn read<T: Value>(&self, text: &str) -> Result<T, BadValue> {
        let value = T::parse(text).map_err(|bad| bad.or_expected(&self.expected()))?;
        let beyond = |bound: Option<&str>, beyond: fn(&T, &T) -> bool| {
            bound.and_then(|bound| T::parse(bound).ok()).is_some_and(|bound| beyond(&value, &bound))
        };
        if beyond(self.min, |value, min| value < min) || beyond(self.max, |value, max| value > max) {
            let shown = if self.secret { "the value".to_owned() } else { format!("`{}`", value.show()) };
            return Err(BadValue::new(format!("{shown} is out of bounds")).or_expected(&self.expected()));
        }
        Ok(value)
    }

    /// The value of a text that was already checked; without a text, the default.
    pub(crate) fn settle<T: Value>(&self, text: Option<&str>) -> T {
        let read = |text: &str| self.read::<T>(text).ok();
        let value = text.and_then(read).or_else(|| self.default.and_then(read)).or_else(T::unset);
        // A test checks that every default in the table is valid, and that a setting without one is optional.
        value.unwrap_or_else(|| panic!("{} has no default of type {}", self.key, type_name::<T>()))
    }
}
