//! What is logged, and where panics go.

use tracing_subscriber::EnvFilter;

use crate::settings::Settings;

/// A store that cannot write ends the command with the same sentence: said once is enough.
const QUIET: &str = "error,switchyard_runtime::worker::slot=off,switchyard_archive::sqlite::writer=off";

pub(crate) fn init(settings: &Settings) {
    let filter = match (&settings.log, settings.verbose) {
        (Some(log), _) => log.as_str(),
        (None, 0) => QUIET,
        (None, 1) => "info",
        (None, _) => "info,switchyard=debug,switchyard_runtime=debug,switchyard_archive=debug",
    };
    let _ = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(settings.colors())
        .try_init();
    log_panics_of_workers();
}

/// A handler that panics fails its node, with the panic's words in the node's error. Printing them as well would
/// only tear the progress display apart.
fn log_panics_of_workers() {
    let ordinary = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() == Some("main") {
            ordinary(panic);
        } else {
            tracing::warn!(%panic, "a task panicked");
        }
    }));
}
