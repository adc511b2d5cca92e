//! Loads settings from file, environment and flags; the later wins.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use switchyard_base::{Diagnostics, suggest};

use crate::file::{self, Said};
use crate::names::{CONFIG_ENV, CONFIG_FILE, OTHERS, PREFIX};
use crate::setting::Setting;
use crate::surroundings::Environment;
use crate::table::{SETTINGS, Settings};

/// The sources of values.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The settings file named by the `--config` flag.
    pub file: Option<PathBuf>,
    pub environment: Environment,
    pub flags: Vec<Given>,
}

/// A flag given on the command line.
#[derive(Clone, Debug)]
pub struct Given {
    /// The setting's key.
    pub key: &'static str,
    /// The flag as the user typed it, such as `--slots`.
    pub flag: &'static str,
    pub value: String,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    Default,
    File { file: String, line: usize },
    Env { name: &'static str },
    Flag { flag: &'static str },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Env { name } => write!(f, "env {name}"),
            Self::Flag { flag } => write!(f, "flag {flag}"),
        }
    }
}

/// The settings, with the source of each value.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub settings: Settings,
    /// The settings file, if one was read.
    pub file: Option<String>,
    pub warnings: Vec<Warning>,
    /// The values as they are printed: secrets masked, `None` for settings without a value.
    values: Vec<(Option<String>, Origin)>,
}

/// An environment variable that was not understood and is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub message: String,
    pub hint: Option<String>,
}

/// The reason why the settings cannot be loaded.
#[derive(Clone, Debug)]
pub enum Refused {
    /// The file contains an unknown setting or an invalid value.
    File { diagnostics: Box<Diagnostics>, text: String },
    /// The file cannot be read, or a variable or a flag has a bad value.
    Sentence { message: String, hint: Option<String> },
}

impl Loaded {
    /// Every setting with its value and the source of that value, in the order of the reference.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, Option<&str>, &Origin)> {
        SETTINGS
            .iter()
            .zip(&self.values)
            .map(|(setting, (value, origin))| (setting, value.as_deref(), origin))
    }

    /// Whether the setting with this key has its default.
    pub fn is_default(&self, key: &str) -> bool {
        self.iter().any(|(setting, _, origin)| setting.key == key && *origin == Origin::Default)
    }
}

/// Reads and checks all sources, and chooses the value of each setting.
pub fn load(sources: &Sources) -> Result<Loaded, Refused> {
    let (file, said) = match find_file(sources)? {
        Some(path) => read_file(&path).map(|said| (Some(path.display().to_string()), said))?,
        None => (None, Vec::new()),
    };
    let mut chosen = Vec::with_capacity(SETTINGS.len());
    for (at, setting) in SETTINGS.iter().enumerate() {
        chosen.push(choose(setting, said.get(at).cloned().flatten(), file.as_deref(), sources)?);
    }
    let settings = Settings::from_texts(chosen.iter().map(|(text, _)| text.as_deref()));
    let shown = |(setting, (text, origin)): (&Setting, (Option<String>, Origin))| {
        let text = text.as_deref().or(setting.default);
        (text.and_then(|text| setting.check(text).ok()), origin)
    };
    let values = SETTINGS.iter().zip(chosen).map(shown).collect();
    let warnings = unknown_names(&sources.environment, &settings.secrets_env_prefix);
    Ok(Loaded { settings, file, warnings, values })
}

fn choose(
    setting: &Setting,
    said: Option<(String, usize)>,
    file: Option<&str>,
    sources: &Sources,
) -> Result<(Option<String>, Origin), Refused> {
    let mut chosen = match (said, file) {
        (Some((text, line)), Some(file)) => (Some(text), Origin::File { file: file.to_owned(), line }),
        _ => (None, Origin::Default),
    };
    for name in setting.env_also.into_iter().chain([setting.env]) {
        if let Some(text) = sources.environment.get(name) {
            let text = text.ok_or_else(|| sentence(format!("{name} is not valid UTF-8"), None))?;
            check(setting, name, text)?;
            chosen = (Some(text.to_owned()), Origin::Env { name });
        }
    }
    if let Some(given) = sources.flags.iter().find(|given| given.key == setting.key) {
        check(setting, given.flag, &given.value)?;
        chosen = (Some(given.value.clone()), Origin::Flag { flag: given.flag });
    }
    Ok(chosen)
}

fn check(setting: &Setting, place: &str, text: &str) -> Result<(), Refused> {
    let bad = setting.check(text).err();
    bad.map_or(Ok(()), |bad| Err(sentence(format!("{place}: {}", bad.message), bad.hint)))
}

fn sentence(message: String, hint: Option<String>) -> Refused {
    Refused::Sentence { message, hint }
}

/// Finds the settings file. A file that a flag or the environment names must exist.
fn find_file(sources: &Sources) -> Result<Option<PathBuf>, Refused> {
    let named = match (&sources.file, sources.environment.get(CONFIG_ENV)) {
        (Some(file), _) => Some(file.clone()),
        (None, Some(Some(file))) => Some(PathBuf::from(file)),
        (None, Some(None)) => return Err(sentence(format!("{CONFIG_ENV} is not valid UTF-8"), None)),
        (None, None) => None,
    };
    Ok(named.or_else(|| Some(PathBuf::from(CONFIG_FILE)).filter(|file| file.exists())))
}

fn read_file(path: &Path) -> Result<Said, Refused> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let hint = format!("it is named by --config, by {CONFIG_ENV}, or is ./{CONFIG_FILE}");
        sentence(format!("the settings file {name} cannot be read: {error}"), Some(hint))
    })?;
    file::read(&name, &text).map_err(|problems| Refused::File { diagnostics: Box::new(problems), text })
}

/// Warns about variables that have this program's prefix and are unknown: most likely typing errors.
fn unknown_names(environment: &Environment, secrets: &str) -> Vec<Warning> {
    let known: Vec<&str> =
        SETTINGS.iter().map(|setting| setting.env).chain(OTHERS.iter().map(|(name, _)| *name)).collect();
    let is_secret = |name: &str| !secrets.is_empty() && name.starts_with(secrets);
    let unknown = environment
        .names()
        .filter(|name| name.starts_with(PREFIX) && !known.contains(name) && !is_secret(name));
    unknown
        .map(|name| Warning {
            message: format!("the environment sets {name}, which means nothing"),
            // All names share the prefix; comparing only the rest gives better suggestions.
            hint: suggest::nearest(
                &name[PREFIX.len()..],
                known.iter().filter_map(|known| known.strip_prefix(PREFIX)),
            )
            .map(|near| format!("did you mean {PREFIX}{near}?")),
        })
        .collect()
}
