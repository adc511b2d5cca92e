//! What is logged, and where panics go.

use switchyard_settings::LogFormat;
use tracing_subscriber::EnvFilter;

use crate::output;
use crate::settings::Settings;

pub(crate) fn init(settings: &Settings) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&settings.log_filter))
        .with_writer(std::io::stderr)
        .with_ansi(output::colors());
    let _ = match settings.log_format {
        LogFormat::Pretty => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
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
