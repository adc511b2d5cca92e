//! `matches`: regular expressions, in linear time, charged for their size.
//!
//! The regex library takes time in proportion to the text times the pattern in the worst case, and a short pattern such
//! as `(\\w{100}){100}` can stand for a large one. So this module measures a pattern before it compiles it.

use cel::ExecutionError;
use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::budget::{Budget, Exceeded};
use super::evaluate::{Evaluation, Stop};
use super::plan::Call;

/// The largest compiled pattern, in bytes of memory; a larger one is an error.
const COMPILED_BYTES_MAX: usize = 10 * 1024 * 1024;

/// The steps to compile one state of a pattern, and the bytes that it takes.
const STEPS_PER_STATE: u64 = 4;
const BYTES_PER_STATE: u64 = 64;

/// Positions of the pattern that are compared with a character in the time of one step.
const PLACES_PER_STEP: u64 = 8;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// Positions of the pattern that can be active at once.
    places: u64,
}

impl Pattern {
    fn compile(source: &str, budget: &Budget<'_>) -> Result<Self, Stop> {
        budget.step(1 + source.len() as u64)?;
        let places = match regex_syntax::parse(source) {
            Ok(hir) => {
                let size = Size::of(&hir);
                budget.step(size.states.saturating_mul(STEPS_PER_STATE))?;
                let bytes = size.states.saturating_mul(BYTES_PER_STATE);
                budget.make(bytes.min(COMPILED_BYTES_MAX as u64))?;
                size.places
            }
            // The regex library reports the mistake below.
            Err(_) => 1,
        };
        match regex::RegexBuilder::new(source).size_limit(COMPILED_BYTES_MAX).build() {
            Ok(regex) => Ok(Self { regex, places }),
            Err(error) => {
                let message = format!("'{source}' not a valid regex:\n{error}");
                Err(ExecutionError::function_error("matches", message).into())
            }
        }
    }

    fn is_match(&self, text: &str, budget: &Budget<'_>) -> Result<bool, Exceeded> {
        let places = (text.len() as u64).saturating_mul(self.places + 4);
        budget.step(1 + places / PLACES_PER_STEP)?;
        Ok(self.regex.is_match(text))
    }
}

impl Evaluation<'_, '_> {
    pub(super) fn matches(&self, call: &Call, text: &str, pattern: &str) -> Result<bool, Stop> {
        if call.has_literal_pattern {
            let compiled = match call.pattern.get() {
                Some(compiled) => compiled,
                None => {
                    let compiled = Pattern::compile(pattern, self.budget)?;
                    call.pattern.get_or_init(|| compiled)
                }
            };
            return Ok(compiled.is_match(text, self.budget)?);
        }
        let mut patterns = self.patterns.borrow_mut();
        if !patterns.contains_key(pattern) {
            let compiled = Pattern::compile(pattern, self.budget)?;
            patterns.insert(pattern.to_owned(), compiled);
        }
        Ok(patterns[pattern].is_match(text, self.budget)?)
    }
}

/// Positions of a pattern that can be active at once; its length, if only another dialect can read it.
pub(crate) fn places(source: &str) -> u64 {
    regex_syntax::parse(source).map_or(source.len() as u64, |hir| Size::of(&hir).places)
}

/// The size of a pattern with its repetitions written out.
#[derive(Clone, Copy)]
struct Size {
    /// Characters and classes.
    places: u64,
    /// The same, with each range of a class counted.
    states: u64,
}

impl Size {
    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Self { places: 1, states: 1 },
            HirKind::Literal(literal) => {
                let bytes = literal.0.len() as u64;
                Self { places: bytes, states: bytes }
            }
            HirKind::Class(class) => {
                let ranges = match class {
                    Class::Unicode(class) => class.ranges().len(),
                    Class::Bytes(class) => class.ranges().len(),
                };
                Self { places: 1, states: 1 + ranges as u64 }
            }
            HirKind::Repetition(repetition) => {
                let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
                let once = Self::of(&repetition.sub);
                Self {
                    places: once.places.saturating_mul(times.into()),
                    states: once.states.saturating_mul(times.into()),
                }
            }
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                parts.iter().map(Self::of).fold(Self { places: 1, states: 1 }, |whole, part| Self {
                    places: whole.places.saturating_add(part.places),
                    states: whole.states.saturating_add(part.states),
                })
            }
        }
    }
}
