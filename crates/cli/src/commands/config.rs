//! `switchyard config`

use serde::Serialize;
use switchyard_settings::Origin;

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// Print every setting, its value, and where that came from
///
/// A setting comes from its default, the settings file, the environment, or a flag; the later wins. Secrets are not
/// shown. docs/reference/settings.md is the reference.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard config
  switchyard config --config /etc/switchyard.toml --json")]
pub(crate) struct Args {
    /// Print a document with every setting, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    /// The settings file that was read.
    file: Option<&'a str>,
    settings: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    key: &'a str,
    value: Option<&'a str>,
    #[serde(flatten)]
    origin: &'a Origin,
    env: &'a str,
    default: Option<&'a str>,
    secret: bool,
}

pub(crate) fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let loaded = settings.loaded();
    if args.json {
        let shown = loaded.iter().map(|(setting, value, origin)| Shown {
            key: setting.key,
            value,
            origin,
            env: setting.env,
            default: setting.default,
            secret: setting.secret,
        });
        output::json(&Document { file: loaded.file.as_deref(), settings: shown.collect() })?;
        return Ok(());
    }
    let row = |(setting, value, origin): (&switchyard_settings::Setting, Option<&str>, &Origin)| {
        [setting.key.to_owned(), output::or_dash(value), origin.to_string()]
    };
    output::table(["SETTING", "VALUE", "FROM"], loaded.iter().map(row).collect())?;
    Ok(())
}
