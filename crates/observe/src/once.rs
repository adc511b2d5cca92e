//! For loops that meet the same trouble again and again: it is said when it begins.

use std::fmt::Display;

#[derive(Debug, Default)]
pub struct Once {
    said: Option<String>,
}

impl Once {
    /// Whether this is not what was said last.
    pub fn is_news(&mut self, trouble: &impl Display) -> bool {
        let trouble = trouble.to_string();
        let news = self.said.as_ref() != Some(&trouble);
        self.said = Some(trouble);
        news
    }

    /// It is over: the next time is another.
    pub fn is_over(&mut self) {
        self.said = None;
    }
}
