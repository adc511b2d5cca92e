//! Prints the problems of a text: on a terminal with the source lines, otherwise one line each.

use std::fmt;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use switchyard_base::{Diagnostic, Diagnostics};

use crate::escape;
use crate::output;

pub(super) fn tell(diagnostics: &Diagnostics, text: Option<&str>, graphical: bool) {
    match graphical.then(|| draw(diagnostics, text)).flatten() {
        Some(drawn) => output::tell_drawn(drawn.trim_end()),
        None => output::tell(diagnostics.to_string().trim_end()),
    }
}

fn draw(diagnostics: &Diagnostics, text: Option<&str>) -> Option<String> {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode());
    let mut drawn = String::new();
    for diagnostic in diagnostics {
        let source = source(diagnostics, text);
        handler.render_report(&mut drawn, &Shown { diagnostic, source }).ok()?;
    }
    Some(drawn)
}

fn source(diagnostics: &Diagnostics, text: Option<&str>) -> Option<NamedSource<String>> {
    let file = diagnostics.file.as_deref()?;
    // A problem may be in an included file instead of the given one.
    let text = text.map_or_else(|| std::fs::read_to_string(file).ok(), |text| Some(text.to_owned()))?;
    Some(NamedSource::new(escape::one_line(file), escape::in_place(&text)))
}

/// Adapts one problem to miette.
#[derive(Debug)]
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    source: Option<NamedSource<String>>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.diagnostic.position.is_none() && !self.diagnostic.path.is_empty() {
            write!(f, "{}: ", escape::one_line(&self.diagnostic.path))?;
        }
        f.write_str(&escape::text(&self.diagnostic.message))
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = self.diagnostic.hint.as_ref()?;
        Some(Box::new(escape::text(hint)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let location = self.diagnostic.position?;
        self.source.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new(
            Some("here".to_owned()),
            location.offset,
            location.len,
        ))))
    }
}
