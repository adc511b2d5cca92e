//! What is set by flags and by the environment. Nobody else reads the environment.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::ArgAction;
use switchyard_core::RunId;

const DATA_DEFAULT: &str = "./switchyard-data";

/// Apart from a command's own flags.
const HEADING: &str = "Global options";

/// Flags that every command takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Settings {
    /// The folder that runs are kept in
    #[arg(long, global = true, env = "SWITCHYARD_DATA", default_value = DATA_DEFAULT, value_name = "DIR")]
    #[arg(help_heading = HEADING)]
    pub(crate) data: PathBuf,

    /// Log more to stderr: -v what happens, -vv how
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = HEADING)]
    pub(crate) verbose: u8,

    /// What to log, as tracing filter directives such as `switchyard_runtime=debug`
    #[arg(long, global = true, env = "SWITCHYARD_LOG", value_name = "FILTER", help_heading = HEADING)]
    pub(crate) log: Option<String>,
}

impl Settings {
    /// Whether a bar can be drawn: nothing else may write to the terminal meanwhile.
    pub(crate) fn draws(&self) -> bool {
        std::io::stderr().is_terminal() && self.verbose == 0 && self.log.is_none()
    }

    /// Whether somebody is there to be asked.
    pub(crate) fn can_ask(&self) -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Whether stderr may be coloured (<https://no-color.org>).
    pub(crate) fn colors(&self) -> bool {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        std::io::stderr().is_terminal() && !refused
    }

    /// The command that carries a run on, as it has to be typed here.
    pub(crate) fn resume_command(&self, run: RunId) -> String {
        self.command(&format!("run --resume {run}"))
    }

    /// A command that works on the same data folder.
    pub(crate) fn command(&self, words: &str) -> String {
        let data = self.data.display().to_string();
        if data == DATA_DEFAULT {
            return format!("switchyard {words}");
        }
        let plain = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
        let shown = if plain { data } else { format!("'{}'", data.replace('\'', "'\\''")) };
        format!("switchyard {words} --data {shown}")
    }
}

/// Who types, for histories.
pub(crate) fn user() -> String {
    let named = ["USER", "LOGNAME"].into_iter().find_map(std::env::var_os);
    named.and_then(|name| name.into_string().ok()).filter(|name| !name.is_empty()).unwrap_or("cli".to_owned())
}
