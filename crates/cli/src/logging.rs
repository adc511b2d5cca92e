//! Sets up logging, and the logging of panics.

use std::fmt::{self, Write};

use switchyard_settings::LogFormat;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::escape::OneLine;
use crate::output;
use crate::settings::Settings;

pub(crate) fn init(settings: &Settings) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&settings.log_filter))
        .with_writer(std::io::stderr)
        .with_ansi(output::colors());
    let _ = match settings.log_format {
        LogFormat::Pretty => lines.fmt_fields(fields()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    log_panics_of_workers();
}

fn fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    debug_fn(write_field).delimited(" ")
}

/// Writes `name=value` on one line, with control characters escaped. The library escapes only some of them.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let mut escaped = OneLine(writer);
    match field.name() {
        "message" => write!(escaped, "{value:?}"),
        name => write!(escaped, "{name}={value:?}"),
    }
}

/// Logs panics of worker threads instead of printing them. A handler that panics fails its node, whose error has the
/// panic's message; printing it as well would disrupt the progress display.
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_line_is_one_line_without_what_a_terminal_obeys() {
        let log = Log::default();
        let writer = log.clone();
        let lines =
            tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).without_time();
        let evil = "a\u{1b}[2J\n\r\u{9b}\u{202e}b";
        tracing::subscriber::with_default(lines.fmt_fields(fields()).finish(), || {
            let _step = tracing::info_span!("step", node = %evil).entered();
            tracing::warn!(reason = %evil, text = evil, error = ?evil, "it says {evil}");
        });
        let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let shown = r"a\u{1b}[2J\n\r\u{9b}\u{202e}b";
        let end = format!("it says {shown} reason={shown} text=\"{shown}\" error=\"{shown}\"\n");
        assert!(said.ends_with(&end) && said.contains(&format!("step{{node={shown}}}")), "{said:?}");
        assert_eq!(said.matches('\n').count(), 1, "{said:?}");
    }
}
