//! `switchyard init`

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::errors::Failure;
use crate::output;

const WORKFLOW: &str = "hello.yaml";
const SCHEMA: &str = "switchyard.schema.json";

/// Write a first workflow, a schema for your editor, and a settings file
///
/// The workflow names the schema in its first line, so that editors with a YAML language server complete fields and mark
/// mistakes without being set up. A file that exists is never overwritten: then nothing is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  switchyard init\n  switchyard init my-workflows")]
pub(crate) struct Args {
    /// The folder to write to; it is made if it is not there
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,

    /// Print `{"files"}`
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let schema = format!("{:#}\n", switchyard_lang::json_schema());
    let files = [
        (WORKFLOW, include_str!("init/hello.yaml").to_owned()),
        (SCHEMA, schema),
        ("switchyard.toml", include_str!("init/switchyard.toml").to_owned()),
    ];
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| place(&args.folder, name)).collect();
    if let Some(there) = paths.iter().find(|path| path.exists()) {
        return Err(Failure::usage(format!("{} is there already: nothing was written", there.display()))
            .hint("name another folder: switchyard init DIR"));
    }
    fs::create_dir_all(&args.folder).map_err(|error| unwritten(&args.folder, &error))?;
    for (path, (_, text)) in paths.iter().zip(&files) {
        write(path, text).map_err(|error| unwritten(path, &error))?;
    }
    tell(&paths, args.json)
}

/// The path of a file in the folder, without a leading `./`.
fn place(folder: &Path, name: &str) -> PathBuf {
    if folder == Path::new(".") { name.into() } else { folder.join(name) }
}

/// Writes a new file; fails if the file was created since the command checked.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::store(format!("cannot write {}: {error}", path.display()))
}

fn tell(paths: &[PathBuf], json: bool) -> Result<(), Failure> {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if json {
        return Ok(output::json(&json!({ "files": names }))?);
    }
    for name in &names {
        output::line(name)?;
    }
    output::hint(&format!("run it with `switchyard run {} -i name=Ada`", names[0]));
    output::hint(&format!("work on it with `switchyard dev {}`", names[0]));
    Ok(())
}
