//! The cost of the library's functions, computed from the arguments before each call.

use cel::common::types::{CelInt, CelList, CelString, Kind};
use cel::common::value::CowVal;

use super::budget::{Budget, Exceeded};
use super::cost::{VALUE_BYTES, Weight};

/// The longest text that a value without text can become: `%.100f` of the largest integer, and of the largest float.
const VALUE_TEXT_BYTES: u64 = 128;
const FLOAT_TEXT_BYTES: u64 = 512;

/// How a function's cost follows from its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charge {
    /// Reads its arguments, and makes at most twice as much.
    Linear,
    /// Turns values into text.
    Text,
    Replace,
    Split,
    Join,
    /// Compares a text with another at each position.
    Find,
    Range,
    Sort,
}

type Arguments<'x, 'b, 'v> = &'x [CowVal<'b, 'v>];

impl Charge {
    pub(super) fn named(function: &str) -> Self {
        match function {
            "string" | "format" => Self::Text,
            "replace" => Self::Replace,
            "split" => Self::Split,
            "join" => Self::Join,
            "indexOf" | "lastIndexOf" => Self::Find,
            "lists.range" => Self::Range,
            "sort" | "@sortByAssociatedKeys" => Self::Sort,
            _ => Self::Linear,
        }
    }

    /// Charges for the arguments, which are read and may be copied, and for the result.
    pub(super) fn before(
        self,
        arguments: Arguments<'_, '_, '_>,
        budget: &Budget<'_>,
    ) -> Result<(), Exceeded> {
        let mut whole = Weight::default();
        for argument in arguments {
            let weight = Weight::of(argument.as_ref(), budget.bytes_left());
            budget.walk(&weight)?;
            whole.values += weight.values;
            whole.floats += weight.floats;
            whole.entries += weight.entries;
            whole.text += weight.text;
        }
        match self {
            Self::Linear => budget.make(2 * whole.bytes()),
            Self::Text => {
                let numbers = whole.values * VALUE_TEXT_BYTES + whole.floats * FLOAT_TEXT_BYTES;
                budget.make(numbers + 4 * whole.text)
            }
            Self::Replace => replace(arguments, budget),
            Self::Split => split(arguments, budget),
            Self::Join => join(arguments, &whole, budget),
            Self::Find => find(arguments, budget),
            Self::Range => range(arguments, budget),
            Self::Sort => {
                budget.step(whole.values.saturating_mul(u64::from(whole.values.ilog2())) / 2)?;
                budget.make(2 * whole.bytes())
            }
        }
    }
}

fn text<'x>(arguments: Arguments<'x, '_, '_>, at: usize) -> &'x str {
    arguments.get(at).and_then(|value| value.downcast_ref::<CelString<'_>>()).map_or("", CelString::inner)
}

/// The argument that limits the number of times; negative or missing means no limit.
fn times(arguments: Arguments<'_, '_, '_>, at: usize) -> u64 {
    let number =
        arguments.get(at).and_then(|value| value.downcast_ref::<CelInt>()).map(|value| *value.inner());
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or(u64::MAX)
}

/// How often `part` occurs in `text`; an empty `part` occurs between all characters.
fn occurrences(text: &str, part: &str, budget: &Budget<'_>) -> Result<u64, Exceeded> {
    budget.scan(8 * text.len() as u64)?;
    Ok(text.matches(part).count() as u64)
}

fn replace(arguments: Arguments<'_, '_, '_>, budget: &Budget<'_>) -> Result<(), Exceeded> {
    let (text, from, to) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
    let count = occurrences(text, from, budget)?.min(times(arguments, 3));
    budget.make((text.len() as u64).saturating_add(count.saturating_mul(to.len() as u64)))
}

fn split(arguments: Arguments<'_, '_, '_>, budget: &Budget<'_>) -> Result<(), Exceeded> {
    let text = text(arguments, 0);
    let count = occurrences(text, self::text(arguments, 1), budget)?.saturating_add(1);
    let count = count.min(times(arguments, 2));
    budget.step(count / 4)?;
    budget.make((text.len() as u64).saturating_add(count.saturating_mul(VALUE_BYTES)))
}

fn join(arguments: Arguments<'_, '_, '_>, whole: &Weight, budget: &Budget<'_>) -> Result<(), Exceeded> {
    let list = arguments.first().and_then(|value| value.downcast_ref::<CelList<'_>>());
    let count = list.map_or(0, |list| list.inner().len() as u64);
    let between = count.saturating_mul(text(arguments, 1).len() as u64);
    // The call copies the list into the library.
    budget.make(whole.bytes().saturating_add(whole.text).saturating_add(between))
}

fn find(arguments: Arguments<'_, '_, '_>, budget: &Budget<'_>) -> Result<(), Exceeded> {
    let (text, part) = (text(arguments, 0).len() as u64, text(arguments, 1).len() as u64);
    // The library turns both texts into lists of characters.
    budget.make(4 * (text + part))?;
    budget.step(text.saturating_mul(part.max(1)) / 32)
}

fn range(arguments: Arguments<'_, '_, '_>, budget: &Budget<'_>) -> Result<(), Exceeded> {
    let is_int = arguments.first().is_some_and(|value| value.get_type().kind() == Kind::Int);
    // The library refuses a negative or absurd length.
    let count = if is_int { times(arguments, 0).min(1_000_000) } else { 0 };
    budget.step(count / 4)?;
    budget.make(count * VALUE_BYTES)
}
