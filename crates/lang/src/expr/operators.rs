//! `+ - * / %`, comparisons, and `in`.
//!
//! CEL refuses `2 * 1.5`, and its checker would report that beforehand. Switchyard's numbers are JSON's, where a price
//! is `10` today and `10.5` tomorrow: an expression that works for one must work for the other. So `+ - * /` between an
//! integer and a float widen the integer, and otherwise do what CEL does.

use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::types::{CelDouble, CelInt, CelString, CelUInt, Kind};
use cel::common::value::{CowVal, Val};

use super::budget::Exceeded;
use super::cost::Weight;
use super::evaluate::Evaluation;
use super::operand::{Evaluated, Operand};
use super::plan::Binary;

impl<'v> Evaluation<'_, 'v> {
    pub(super) fn binary<'b>(
        &'b self,
        operator: Binary,
        left: Operand<'b, 'v>,
        right: Operand<'b, 'v>,
    ) -> Evaluated<'b, 'v> {
        let (left, right) = (self.cel(left)?, self.cel(right)?);
        let (left, right) = (left.as_ref(), right.as_ref());
        match operator {
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide => {
                if let Some(value) = widened(operator, left, right) {
                    return Ok(Operand::owned(CelDouble::from(value)));
                }
                self.charge_arithmetic(left, right)?;
                Ok(Operand::Cel(CowVal::Owned(arithmetic(operator, left, right)?)))
            }
            Binary::Modulo => {
                self.charge_arithmetic(left, right)?;
                Ok(Operand::Cel(CowVal::Owned(arithmetic(operator, left, right)?)))
            }
            Binary::In => {
                self.charge_walk(right)?;
                self.charge_walk(left)?;
                let wrong = || unfit(operator, left, right);
                let found = right.as_container().ok_or_else(wrong)?.contains(left);
                Ok(Operand::boolean(found.map_err(|error| in_context(error, wrong))?))
            }
            Binary::Less | Binary::LessEquals | Binary::Greater | Binary::GreaterEquals => {
                self.charge_comparison(left, right)?;
                let ordering = compare(operator, left, right)?;
                Ok(Operand::boolean(match operator {
                    Binary::Less => ordering == Ordering::Less,
                    Binary::LessEquals => ordering != Ordering::Greater,
                    Binary::Greater => ordering == Ordering::Greater,
                    _ => ordering != Ordering::Less,
                }))
            }
        }
    }

    /// Charges for both operands: the result is as large as both together, and so is the library's error, which shows
    /// both.
    fn charge_arithmetic(&self, left: &dyn Val, right: &dyn Val) -> Result<(), Exceeded> {
        if is_number(left) && is_number(right) {
            return Ok(());
        }
        self.charge_copy_of_text_too(left)?;
        self.charge_copy_of_text_too(right)
    }

    fn charge_copy_of_text_too(&self, value: &dyn Val) -> Result<(), Exceeded> {
        let weight = Weight::of(value, self.budget.bytes_left());
        self.budget.walk(&weight)?;
        self.budget.make(weight.bytes())
    }

    pub(super) fn charge_walk(&self, value: &dyn Val) -> Result<(), Exceeded> {
        if is_number(value) {
            return Ok(());
        }
        self.budget.walk(&Weight::of(value, self.budget.bytes_left()))
    }

    /// Charges for a comparison. Different kinds differ at once, and texts are compared up to the length of the shorter
    /// one.
    pub(super) fn charge_comparison(&self, left: &dyn Val, right: &dyn Val) -> Result<(), Exceeded> {
        match (left.get_type().kind(), right.get_type().kind()) {
            (Kind::String, Kind::String) => {
                let length =
                    |value: &dyn Val| value.downcast_ref::<CelString<'_>>().map_or(0, |text| text.len());
                self.budget.scan(length(left).min(length(right)) as u64)
            }
            (Kind::Int | Kind::UInt | Kind::Double | Kind::Boolean | Kind::NullType, _)
                if is_number(right) =>
            {
                Ok(())
            }
            _ => {
                self.charge_walk(left)?;
                self.charge_walk(right)
            }
        }
    }
}

fn is_number(value: &dyn Val) -> bool {
    matches!(value.get_type().kind(), Kind::Int | Kind::UInt | Kind::Double)
}

/// The result of an operator between an integer and a float.
fn widened(operator: Binary, left: &dyn Val, right: &dyn Val) -> Option<f64> {
    let is_double = |value: &dyn Val| value.get_type().kind() == Kind::Double;
    if is_double(left) == is_double(right) {
        return None;
    }
    let (left, right) = (as_double(left)?, as_double(right)?);
    Some(match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        _ => left / right,
    })
}

fn as_double(value: &dyn Val) -> Option<f64> {
    if let Some(value) = value.downcast_ref::<CelDouble>() {
        return Some(*value.inner());
    }
    if let Some(value) = value.downcast_ref::<CelInt>() {
        return Some(*value.inner() as f64);
    }
    value.downcast_ref::<CelUInt>().map(|value| *value.inner() as f64)
}

fn arithmetic<'v>(
    operator: Binary,
    left: &(dyn Val + 'v),
    right: &(dyn Val + 'v),
) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    let result = match operator {
        Binary::Add => left.as_adder().map(|left| left.add(right)),
        Binary::Subtract => left.as_subtractor().map(|left| left.sub(right)),
        Binary::Multiply => left.as_multiplier().map(|left| left.mul(right)),
        Binary::Divide => left.as_divider().map(|left| left.div(right)),
        _ => left.as_modder().map(|left| left.modulo(right)),
    };
    match result {
        Some(Ok(value)) => Ok(value.into_owned()),
        Some(Err(ExecutionError::UnsupportedBinaryOperator(..))) | None => Err(unfit(operator, left, right)),
        Some(Err(error)) => Err(error),
    }
}

fn compare(operator: Binary, left: &dyn Val, right: &dyn Val) -> Result<Ordering, ExecutionError> {
    let wrong = || unfit(operator, left, right);
    left.as_comparer().ok_or_else(wrong)?.compare(right).map_err(|error| in_context(error, wrong))
}

fn unfit(operator: Binary, left: &dyn Val, right: &dyn Val) -> ExecutionError {
    let types = vec![left.get_type().name().to_owned(), right.get_type().name().to_owned()];
    ExecutionError::no_such_overload(operator.symbol(), types)
}

/// Replaces an error about the types of operands by one that names the operator.
pub(super) fn in_context(error: ExecutionError, context: impl FnOnce() -> ExecutionError) -> ExecutionError {
    match error {
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::UnexpectedType { .. } => context(),
        error => error,
    }
}
