//! The settings of this process, as commands use them. `switchyard-settings` defines and loads them.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::ops::Deref;

use switchyard_runtime::kinds::{Commands, Egress, NodeSettings};
use switchyard_runtime::{Principal, Secrets};
use switchyard_settings::{Environment, Given, Loaded, Refused, Sources};
use switchyard_store::RetentionPolicy;

use crate::errors::Failure;
use crate::flags::GlobalArgs;
use crate::output;

/// The settings, loaded once at start.
#[derive(Clone, Debug)]
pub(crate) struct Settings(Loaded);

impl Deref for Settings {
    type Target = switchyard_settings::Settings;

    fn deref(&self) -> &Self::Target {
        &self.0.settings
    }
}

impl Settings {
    /// Loads the settings from file, environment and flags, and prints a warning for each unknown variable.
    pub(crate) fn load(globals: &GlobalArgs, flags: Vec<Given>) -> Result<Self, Failure> {
        let file = globals.config.clone();
        let sources = Sources { file, environment: Environment::of_process(), flags };
        let loaded = switchyard_settings::load(&sources)?;
        for warning in &loaded.warnings {
            output::tell(&format!("warning: {}", warning.message));
            warning.hint.iter().for_each(|hint| output::hint(hint));
        }
        Ok(Self(loaded))
    }

    /// The settings with the source of each value.
    pub(crate) fn loaded(&self) -> &Loaded {
        &self.0
    }

    /// Which ended runs are kept; all of them if `None`.
    pub(crate) fn retention(&self) -> Option<RetentionPolicy> {
        let policy = RetentionPolicy {
            keep_for: self.retention_keep_for,
            keep_runs: self.retention_keep_runs.map(|runs| runs.get() as u64),
            payload_grace: self.retention_payload_grace,
        };
        (policy.keep_for.is_some() || policy.keep_runs.is_some()).then_some(policy)
    }

    /// The settings of nodes, such as the environment of commands and the allowed egress.
    pub(crate) fn nodes(&self) -> NodeSettings {
        let commands = Commands {
            env: self.command_env.as_ref().map_or_else(Vec::new, |names| names.0.clone()),
            // This process starts no other programs than those of `command` nodes.
            adopt_orphans: true,
            ..Commands::default()
        };
        let egress = self
            .egress_allow
            .as_ref()
            .map_or_else(Egress::default, |networks| Egress::allowing(networks.0.clone()));
        NodeSettings { allow_commands: self.allow_commands, commands, egress, secrets: self.secrets() }
    }

    /// The secrets of nodes. There are none if the prefix is empty, which would make every variable a secret.
    fn secrets(&self) -> Secrets {
        let prefix = &self.secrets_env_prefix;
        let values = match prefix.is_empty() {
            true => BTreeMap::new(),
            false => Environment::of_process().with_prefix(prefix),
        };
        Secrets { dir: self.secrets_dir.clone(), values }
    }

    /// Whether a progress bar can be drawn: log lines on the terminal would break it.
    pub(crate) fn draws(&self) -> bool {
        std::io::stderr().is_terminal() && self.0.is_default("log.filter")
    }

    /// Whether a user can answer questions: stdin and stderr are terminals.
    pub(crate) fn can_ask(&self) -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// The command line that makes `words` act on the same data folder.
    pub(crate) fn command(&self, words: &str) -> String {
        if self.0.is_default("data") {
            return format!("switchyard {words}");
        }
        let data = self.data.display().to_string();
        let plain = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
        let shown = if plain { data } else { format!("'{}'", data.replace('\'', "'\\''")) };
        format!("switchyard {words} --data {shown}")
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::File { diagnostics, text } => {
                let file = diagnostics.file.clone().unwrap_or_default();
                Self::invalid(file, *diagnostics, Some(text))
            }
            Refused::Sentence { message, hint } => {
                hint.into_iter().fold(Self::usage(message), |failure, hint| failure.hint(hint))
            }
        }
    }
}

/// The name of the user, recorded in histories.
pub(crate) fn user() -> String {
    switchyard_settings::user().unwrap_or("cli".to_owned())
}

/// The user as the principal of changes in a data folder.
pub(crate) fn principal() -> Principal {
    Principal::local(user())
}
