//! `a.b`, `a[b]`, `has(a.b)`, `a.?b` and `a[?b]`.

use cel::ExecutionError;
use cel::common::types::{CelDouble, CelInt, CelOptional, CelString, Kind};
use cel::common::value::{CowVal, Val};
use serde_json::Value;

use super::evaluate::{Evaluation, Stop};
use super::operand::{Evaluated, Operand, Unwrapped, unwrap};
use super::operators::in_context;
use super::plan::Plan;
use super::walk::Locals;

impl<'v> Evaluation<'_, 'v> {
    /// `of.field`, or `has(of.field)` if it is a test.
    pub(super) fn select<'b>(&'b self, of: Operand<'b, 'v>, field: &str, test: bool) -> Evaluated<'b, 'v> {
        if let Operand::Json(Value::Object(map)) = of {
            return match map.get(field) {
                found if test => Ok(Operand::boolean(found.is_some())),
                Some(value) => Ok(Operand::Json(value)),
                None => Err(ExecutionError::no_such_key(field).into()),
            };
        }
        let key = CelString::from(field);
        match unwrap(of) {
            Unwrapped::None if test => Ok(Operand::boolean(false)),
            Unwrapped::None => Ok(Operand::owned(CelOptional::none())),
            Unwrapped::Some(inside) => {
                let inside = self.cel(inside)?;
                let indexer = inside.as_indexer().ok_or_else(|| ExecutionError::no_such_key(field))?;
                if test {
                    return Ok(Operand::boolean(indexer.get(&key).is_ok()));
                }
                self.optional(self.look_up(inside, &key, "_._"))
            }
            Unwrapped::NotOptional(of) if test => {
                let of = self.cel(of)?;
                let wrong = || unfit("_._", of.as_ref(), &key);
                match of.as_indexer().ok_or_else(wrong)?.get(&key) {
                    Ok(_) => Ok(Operand::boolean(true)),
                    Err(ExecutionError::NoSuchKey(_)) => Ok(Operand::boolean(false)),
                    Err(error) => Err(in_context(error, wrong).into()),
                }
            }
            Unwrapped::NotOptional(of) => self.look_up(self.cel(of)?, &key, "_._"),
        }
    }

    pub(super) fn index<'b>(
        &'b self,
        optional: bool,
        operands: &'b [Plan; 2],
        locals: Locals<'b, 'v>,
    ) -> Evaluated<'b, 'v> {
        let (of, is_inside) = match unwrap(self.eval(&operands[0], locals)?) {
            Unwrapped::NotOptional(of) => (of, false),
            Unwrapped::Some(of) => (of, true),
            Unwrapped::None => return Ok(Operand::owned(CelOptional::none())),
        };
        let key = self.eval(&operands[1], locals)?;
        let operator = if optional { "_[?_]" } else { "_[_]" };
        let found = self.element(of, key, operator);
        if optional || is_inside { self.optional(found) } else { found }
    }

    pub(super) fn select_optional<'b>(
        &'b self,
        operands: &'b [Plan; 2],
        locals: Locals<'b, 'v>,
    ) -> Evaluated<'b, 'v> {
        let of = self.eval(&operands[0], locals)?;
        let key = self.eval(&operands[1], locals)?;
        let of = match unwrap(of) {
            Unwrapped::NotOptional(of) | Unwrapped::Some(of) => of,
            Unwrapped::None => return Ok(Operand::owned(CelOptional::none())),
        };
        let found = self.element(of, key, "_?._");
        self.optional(found)
    }

    /// `of[key]`. Looks into JSON without converting it.
    fn element<'b>(&'b self, of: Operand<'b, 'v>, key: Operand<'b, 'v>, operator: &str) -> Evaluated<'b, 'v> {
        let key = self.cel(key)?;
        if let Operand::Json(json) = of
            && let Some(found) = json_element(json, key.as_ref())
        {
            return Ok(Operand::Json(found));
        }
        let of = self.cel(of)?;
        // The library's error for `list[1.5]` has a copy of the list.
        let is_fraction = key.downcast_ref::<CelDouble>().is_some_and(|key| key.inner().fract() != 0.0);
        if is_fraction && of.get_type().kind() == Kind::List {
            return Err(unfit(operator, of.as_ref(), key.as_ref()).into());
        }
        // The library's error for an invalid or missing key has a copy of the key.
        self.charge_walk(key.as_ref())?;
        self.look_up(of, key.as_ref(), operator)
    }

    /// Looks up an element: borrowed from a borrowed value, moved out of an owned one.
    fn look_up<'b>(&'b self, of: CowVal<'b, 'v>, key: &dyn Val, operator: &str) -> Evaluated<'b, 'v> {
        let found = match of {
            CowVal::Borrowed(of) => {
                let wrong = || unfit(operator, of, key);
                of.as_indexer().ok_or_else(wrong)?.get(key).map_err(|error| in_context(error, wrong))
            }
            CowVal::Owned(of) => {
                let wrong = unfit(operator, of.as_ref(), key);
                match of.into_indexer() {
                    Some(indexer) => {
                        indexer.steal(key).map(CowVal::Owned).map_err(|error| in_context(error, || wrong))
                    }
                    None => Err(wrong),
                }
            }
        };
        Ok(Operand::Cel(found?))
    }

    /// Wraps a found value in an optional; a failed lookup gives an empty one.
    fn optional<'b>(&'b self, found: Evaluated<'b, 'v>) -> Evaluated<'b, 'v> {
        match found {
            Ok(value) => Ok(Operand::owned(CelOptional::of(self.own(value)?))),
            Err(Stop::Failed(_)) => Ok(Operand::owned(CelOptional::none())),
            Err(exceeded) => Err(exceeded),
        }
    }
}

fn json_element<'v>(json: &'v Value, key: &dyn Val) -> Option<&'v Value> {
    match json {
        Value::Object(map) => map.get(key.downcast_ref::<CelString<'_>>()?.inner()),
        Value::Array(list) => list.get(usize::try_from(*key.downcast_ref::<CelInt>()?.inner()).ok()?),
        _ => None,
    }
}

fn unfit(operator: &str, of: &dyn Val, key: &dyn Val) -> ExecutionError {
    let types = vec![of.get_type().name().to_owned(), key.get_type().name().to_owned()];
    ExecutionError::no_such_overload(operator, types)
}
