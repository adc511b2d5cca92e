//! Generates the reference page from the table of settings.

use std::fmt::{self, Write};

use crate::names::{CONFIG_ENV, CONFIG_FILE, NO_SETTINGS, OTHERS};
use crate::setting::{Flag, Scope, Setting};
use crate::table::SETTINGS;

const HEAD: &str = "\
# Settings

A setting comes from its default, from the settings file, from the environment, or from a flag; the later wins.
`switchyard config` prints every value and where it came from.
";

const NOT_SET: &str = "\
Workers of queues in Redis often know these as well. Switchyard ignores them without a warning.";

/// The text of `docs/reference/settings.md`.
pub fn reference() -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut page);
    page
}

fn write(page: &mut String) -> fmt::Result {
    writeln!(page, "{HEAD}")?;
    writeln!(
        page,
        "The file is TOML: the one named by `--config FILE`, else by `{CONFIG_ENV}`, else `./{CONFIG_FILE}` if it is \
         there.\nA key with a dot is in a table. What is not a setting is refused, with its line. An environment \
         variable that\nis set to nothing is not set; one that begins with `SWITCHYARD_` and is not on this page is \
         warned about.\n\n```toml"
    )?;
    example(page)?;
    writeln!(page, "```\n\n| setting | environment | flag | default |\n|---|---|---|---|")?;
    for setting in SETTINGS {
        let flag = setting.flag.map_or("-".to_owned(), |flag| format!("`{}`", typed(&flag)));
        let default = setting.default.map_or("-".to_owned(), |default| format!("`{default}`"));
        writeln!(
            page,
            "| [`{}`](#{}) | `{}` | {flag} | {default} |",
            setting.key,
            anchor(setting),
            setting.env
        )?;
    }
    SETTINGS.iter().try_for_each(|setting| section(page, setting))?;
    writeln!(page, "\n## Other environment names\n\n| name | what it is |\n|---|---|")?;
    OTHERS.iter().try_for_each(|(name, what)| writeln!(page, "| `{name}` | {what} |"))?;
    writeln!(page, "\n## Names that set nothing\n\n{NOT_SET}\n\n| name | why |\n|---|---|")?;
    NO_SETTINGS.iter().try_for_each(|(name, why)| writeln!(page, "| `{name}` | {why} |"))
}

/// Writes an example file: every setting that has a default, set to that default.
fn example(page: &mut String) -> fmt::Result {
    // TOML allows a table only once, and the settings of one table need not be adjacent.
    let mut tables: Vec<(&str, Vec<(&str, &str)>)> = vec![("", Vec::new())];
    for setting in SETTINGS {
        let (table, key) = setting.key.split_once('.').unwrap_or(("", setting.key));
        let Some(default) = setting.default else { continue };
        match tables.iter_mut().find(|(name, _)| *name == table) {
            Some((_, settings)) => settings.push((key, default)),
            None => tables.push((table, vec![(key, default)])),
        }
    }
    for (table, settings) in tables {
        if !table.is_empty() {
            writeln!(page, "\n[{table}]")?;
        }
        for (key, default) in settings {
            let bare = default.parse::<f64>().is_ok() || default.parse::<bool>().is_ok();
            let quote = if bare { "" } else { "\"" };
            writeln!(page, "{key} = {quote}{default}{quote}")?;
        }
    }
    Ok(())
}

fn section(page: &mut String, setting: &Setting) -> fmt::Result {
    writeln!(page, "\n## {}\n", setting.key)?;
    setting.doc.iter().try_for_each(|line| writeln!(page, "{}", line.trim()))?;
    writeln!(page, "\n- value: {}", setting.expected())?;
    match setting.default {
        Some(default) => writeln!(page, "- default: `{default}`")?,
        None => writeln!(page, "- default: not set")?,
    }
    match setting.env_also {
        Some(also) => writeln!(page, "- environment: `{}`, or `{also}`", setting.env)?,
        None => writeln!(page, "- environment: `{}`", setting.env)?,
    }
    if let Some(flag) = setting.flag {
        let on = match flag.on {
            Scope::Everywhere => "every command",
            Scope::Stores => {
                "`up`, `api`, `worker`, `migrate`, `redis rebuild`, `keys`, `consumers`, `inspect` and `doctor`"
            }
            Scope::Serving => "`up` and `api`",
            Scope::Worker => "`worker`",
            Scope::Working => "`up`, `worker`, and commands that carry a run to its end themselves",
        };
        writeln!(page, "- flag: `{}`, of {on}", typed(&flag))?;
    }
    if setting.secret {
        writeln!(page, "- secret: it is never shown")?;
    }
    Ok(())
}

fn typed(flag: &Flag) -> String {
    match flag.value {
        Some(value) => format!("--{} {value}", flag.long),
        None => format!("--{}", flag.long),
    }
}

/// The anchor that Markdown renderers generate for the heading of a setting.
fn anchor(setting: &Setting) -> String {
    setting.key.replace('.', "")
}
