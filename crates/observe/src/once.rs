//! Logs a repeated problem once: when it begins, not on every pass of a loop.

use std::fmt::Display;

#[derive(Debug, Default)]
pub struct Once {
    said: Option<String>,
}

impl Once {
    /// Whether the problem differs from the last one logged.
    pub fn is_news(&mut self, trouble: &impl Display) -> bool {
        let trouble = trouble.to_string();
        let news = self.said.as_ref() != Some(&trouble);
        self.said = Some(trouble);
        news
    }

    /// The problem is over; the next occurrence is logged again.
    pub fn is_over(&mut self) {
        self.said = None;
    }
}
