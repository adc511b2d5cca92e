//! Values during an evaluation.
//!
//! A value of the scope stays JSON for as long as the expression only looks into it: `input.orders[3].total` converts
//! one number and not the whole input.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelOptional};
use cel::common::value::{Builtin, CowVal, Val};
use serde_json::Value;

use super::budget::{Budget, Exceeded};
use super::convert;
use super::evaluate::{Evaluation, Stop};

/// A value, borrowed for `'b`; the data that it borrows lives for `'v`.
pub(super) enum Operand<'b, 'v> {
    Json(&'v Value),
    Cel(CowVal<'b, 'v>),
}

pub(super) type Evaluated<'b, 'v> = Result<Operand<'b, 'v>, Stop>;

impl<'b, 'v> Operand<'b, 'v> {
    pub(super) fn owned(value: impl Val + 'v) -> Self {
        Self::Cel(CowVal::owned(value))
    }

    pub(super) fn boolean(value: bool) -> Self {
        Self::Cel(CowVal::Borrowed(if value { &CelBool::TRUE } else { &CelBool::FALSE }))
    }

    pub(super) fn lend(&'b self) -> Self {
        match self {
            Self::Json(value) => Self::Json(value),
            Self::Cel(value) => Self::Cel(CowVal::Borrowed(value.as_ref())),
        }
    }

    /// The boolean, if the value is one.
    pub(super) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Json(value) => value.as_bool(),
            Self::Cel(value) => value.downcast_ref::<CelBool>().map(|value| *value.inner()),
        }
    }

    /// The name of the value's type, as error messages show it.
    pub(super) fn type_name(&self) -> String {
        match self {
            Self::Json(value) => convert::type_name(value).to_owned(),
            Self::Cel(value) => value.get_type().name().to_owned(),
        }
    }

    /// The boolean; any other value is an error.
    pub(super) fn truth(&self) -> Result<bool, ExecutionError> {
        let wrong = || ExecutionError::UnexpectedType { got: self.type_name(), want: "bool".to_owned() };
        self.as_bool().ok_or_else(wrong)
    }
}

impl<'v> Evaluation<'_, 'v> {
    /// Converts the operand to a value of the CEL library.
    pub(super) fn cel<'b>(&'b self, operand: Operand<'b, 'v>) -> Result<CowVal<'b, 'v>, Exceeded> {
        match operand {
            Operand::Cel(value) => Ok(value),
            Operand::Json(value @ (Value::Array(_) | Value::Object(_))) => {
                self.conversions.convert(value, self.budget)
            }
            // The charge for the step covers this short-lived box.
            Operand::Json(value) => Ok(CowVal::Owned(convert::from_json(value))),
        }
    }

    /// Converts the operand to an owned value, copied if it was borrowed.
    pub(super) fn own<'b>(&'b self, operand: Operand<'b, 'v>) -> Result<Box<dyn Val + 'v>, Exceeded> {
        match self.cel(operand)? {
            CowVal::Owned(value) => Ok(value),
            CowVal::Borrowed(value) => {
                self.budget.copy(value)?;
                Ok(value.clone_as_boxed())
            }
        }
    }

    /// Detaches an operand from the value it borrows. JSON of the scope outlives every operand.
    pub(super) fn keep<'b, 'x>(&'b self, operand: Operand<'b, 'v>) -> Result<Operand<'x, 'v>, Exceeded> {
        match operand {
            Operand::Json(value) => Ok(Operand::Json(value)),
            other => self.own(other).map(|value| Operand::Cel(CowVal::Owned(value))),
        }
    }
}

/// How many lists and maps an evaluation keeps converted.
const CONVERSIONS_KEPT: usize = 16;

/// Lists and maps of the scope that were converted more than once, such as a list that a loop reads in every iteration.
#[derive(Default)]
pub(super) struct Conversions<'v> {
    kept: [OnceCell<Box<dyn Val + 'v>>; CONVERSIONS_KEPT],
    /// By address: the index in `kept`, or `None` for a value that was seen and is not kept.
    seen: RefCell<HashMap<usize, Option<usize>>>,
    used: Cell<usize>,
}

impl<'v> Conversions<'v> {
    fn convert<'b>(&'b self, value: &'v Value, budget: &Budget<'_>) -> Result<CowVal<'b, 'v>, Exceeded> {
        let address = std::ptr::from_ref(value).addr();
        let seen = self.seen.borrow().get(&address).copied();
        if let Some(Some(at)) = seen
            && let Some(kept) = self.kept[at].get()
        {
            return Ok(CowVal::Borrowed(kept.as_ref()));
        }
        budget.borrow_json(value)?;
        let converted = convert::from_json(value);
        let at = self.used.get();
        if seen.is_none() || at == CONVERSIONS_KEPT {
            self.seen.borrow_mut().entry(address).or_insert(None);
            return Ok(CowVal::Owned(converted));
        }
        self.used.set(at + 1);
        self.seen.borrow_mut().insert(address, Some(at));
        Ok(CowVal::Borrowed(self.kept[at].get_or_init(|| converted).as_ref()))
    }
}

/// The content of an optional.
pub(super) enum Unwrapped<'b, 'v> {
    NotOptional(Operand<'b, 'v>),
    Some(Operand<'b, 'v>),
    None,
}

pub(super) fn unwrap<'b, 'v>(operand: Operand<'b, 'v>) -> Unwrapped<'b, 'v> {
    let value = match operand {
        Operand::Cel(value) if value.downcast_ref::<CelOptional<'_>>().is_some() => value,
        other => return Unwrapped::NotOptional(other),
    };
    let inside = match value {
        CowVal::Borrowed(value) => value
            .downcast_ref::<CelOptional<'_>>()
            .and_then(CelOptional::option)
            .map(|inside| Operand::Cel(CowVal::Borrowed(inside))),
        CowVal::Owned(value) => inside(value).map(|inside| Operand::Cel(CowVal::Owned(inside))),
    };
    inside.map_or(Unwrapped::None, Unwrapped::Some)
}

/// Moves the value out of an optional.
fn inside<'v>(optional: Box<dyn Val + 'v>) -> Option<Box<dyn Val + 'v>> {
    match optional.into_builtin()? {
        Builtin::Optional(optional) => optional.into(),
        _ => None,
    }
}
