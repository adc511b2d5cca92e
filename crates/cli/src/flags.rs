//! Flags generated from the table of settings.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use switchyard_settings::{Flag, Given, SETTINGS, Scope, Setting};

/// The help heading that separates these flags from a command's own.
const HEADING: &str = "Global options";

/// The longest default that the help shows.
const SHOWN_CHARS_MAX: usize = 40;

/// Flags that every command takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GlobalArgs {
    #[command(flatten)]
    everywhere: Flags<EVERYWHERE>,

    /// The settings file [env: SWITCHYARD_CONFIG] [default: switchyard.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    pub(crate) config: Option<PathBuf>,

    /// Log more to stderr: -v what happens, -vv how
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = HEADING)]
    verbose: u8,
}

const EVERYWHERE: u8 = Scope::Everywhere as u8;
const STORES: u8 = Scope::Stores as u8;
const WORKER: u8 = Scope::Worker as u8;
const SERVING: u8 = Scope::Serving as u8;
const WORKING: u8 = Scope::Working as u8;

/// Flags of commands that may look into Redis or Postgres themselves.
pub(crate) type StoreArgs = Flags<STORES>;

/// Flags of `worker` alone.
pub(crate) type WorkerArgs = Flags<WORKER>;

/// Flags of commands that serve.
pub(crate) type ServeArgs = Flags<SERVING>;

/// Flags of commands that execute tasks in this process.
pub(crate) type WorkArgs = Flags<WORKING>;

/// The flags of a scope. Their values go into the settings before a command starts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags<const SCOPE: u8>;

impl<const SCOPE: u8> clap::FromArgMatches for Flags<SCOPE> {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl<const SCOPE: u8> clap::Args for Flags<SCOPE> {
    fn augment_args(command: Command) -> Command {
        let flags = SETTINGS.iter().filter_map(|setting| Some((setting, setting.flag?)));
        command
            .args(flags.filter(|(_, flag)| flag.on as u8 == SCOPE).map(|(setting, flag)| arg(setting, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn arg(setting: &'static Setting, flag: Flag) -> Arg {
    let arg = Arg::new(setting.key).long(flag.long).help(help(setting));
    let arg = match flag.on {
        Scope::Everywhere => arg.global(true).help_heading(HEADING),
        Scope::Stores | Scope::Serving | Scope::Worker | Scope::Working => arg,
    };
    match flag.value {
        Some(name) => {
            arg.value_name(name).value_parser(move |text: &str| setting.check(text).map(|_| text.to_owned()))
        }
        None => arg.action(ArgAction::SetTrue),
    }
}

fn help(setting: &Setting) -> String {
    let help = format!("{} [env: {}]", setting.summary(), setting.env);
    match setting.default.filter(|default| default.len() <= SHOWN_CHARS_MAX) {
        Some(default) => format!("{help} [default: {default}]"),
        None => help,
    }
}

/// The settings that the user gave as flags, at any position of the command line.
pub(crate) fn given(globals: &GlobalArgs, matches: &ArgMatches) -> Vec<Given> {
    let levels: Vec<&ArgMatches> =
        std::iter::successors(Some(matches), |level| level.subcommand().map(|(_, inner)| inner)).collect();
    let flags = SETTINGS.iter().filter_map(|setting| Some((setting.key, setting.flag?)));
    let typed = flags.filter_map(|(key, flag)| {
        let value = levels.iter().rev().find_map(|level| value(level, key, flag))?;
        Some(Given { key, flag: spelled(flag), value })
    });
    typed.chain(verbosity(globals.verbose)).collect()
}

fn value(level: &ArgMatches, key: &str, flag: Flag) -> Option<String> {
    if !level.try_contains_id(key).is_ok_and(|there| there)
        || level.value_source(key) != Some(ValueSource::CommandLine)
    {
        return None;
    }
    match flag.value {
        Some(_) => level.get_one::<String>(key).cloned(),
        None => Some(level.get_flag(key).to_string()),
    }
}

/// The flag with its dashes. Leaks the text: there are few flags, and each is read once in a process.
fn spelled(flag: Flag) -> &'static str {
    format!("--{}", flag.long).leak()
}

/// The log filter for `-v`. `--log` comes earlier in the list, and so wins.
fn verbosity(verbose: u8) -> Option<Given> {
    let (flag, value) = match verbose {
        0 => return None,
        1 => ("-v", "info"),
        _ => ("-vv", "info,switchyard=debug,switchyard_runtime=debug,switchyard_archive_sqlite=debug"),
    };
    Some(Given { key: "log.filter", flag, value: value.to_owned() })
}
