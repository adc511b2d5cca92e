//! Messages for a person who waits until a folder is open.

use std::fmt;
use std::sync::Arc;

/// Receives messages about a folder that is being opened: a check that takes long, permissions that were too wide.
/// The messages are logged as well.
#[derive(Clone)]
pub struct Notice(Arc<dyn Fn(&str) + Send + Sync>);

impl Notice {
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn info(&self, text: &str) {
        tracing::info!("{text}");
        (self.0)(text);
    }

    pub(crate) fn warn(&self, text: &str) {
        tracing::warn!("{text}");
        (self.0)(&format!("warning: {text}"));
    }
}

impl Default for Notice {
    /// Messages are only logged.
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notice")
    }
}
