//! `switchyard dev`

mod files;
mod live;

use std::path::PathBuf;
use std::time::Duration;

use switchyard_runtime::Engine;

use crate::errors::Failure;
use crate::flags::{ServeArgs, StoreArgs, WorkArgs};
use crate::serving::serve_until_stopped;
use crate::settings::Settings;
use crate::stores::Role;
use files::Files;
use live::Live;

/// How often files and runs are polled.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Serve like `up`, register workflows whenever you save them, and show runs live
///
/// A file that cannot be compiled is reported with every mistake; its last registered version stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard dev hello.yaml
  switchyard dev workflows/
  switchyard run hello -i name=Ada     # in another terminal")]
pub(crate) struct Args {
    /// Workflow files, or folders with them (`*.yaml`, `*.yml`)
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    _serve: ServeArgs,

    #[command(flatten)]
    _stores: StoreArgs,

    #[command(flatten)]
    _work: WorkArgs,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    if let Some(missing) = args.paths.iter().find(|path| !path.exists()) {
        return Err(Failure::usage(format!("there is no file or folder {}", missing.display()))
            .hint("`switchyard init` writes a first workflow"));
    }
    serve_until_stopped(settings, Role::All, false, &args.paths).await
}

/// Registers files when they change, and shows runs when they start, until the future is dropped.
pub(crate) async fn watch(engine: Engine, paths: Vec<PathBuf>) {
    let mut files = Files::new(paths);
    let mut live = Live::new(engine.clock().now());
    loop {
        files.register_changed(&engine).await;
        live.show_new(&engine).await;
        engine.clock().sleep(LOOK_EVERY).await;
    }
}
