//! Walks a plan. Each part of the plan costs a step.

use std::collections::HashMap;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelList, CelMap, CelMapKey, CelOptional};
use cel::common::value::{CowVal, Val};

use super::budget::Exceeded;
use super::cost::{ENTRY_BYTES, VALUE_BYTES};
use super::evaluate::{Evaluation, Stop};
use super::operand::{Evaluated, Operand, Unwrapped, unwrap};
use super::plan::Plan;

/// The variables of the enclosing macros, innermost first.
pub(super) type Locals<'b, 'v> = Option<&'b Local<'b, 'v>>;

pub(super) struct Local<'b, 'v> {
    pub(super) value: Operand<'b, 'v>,
    pub(super) outer: Locals<'b, 'v>,
}

fn local<'b, 'v>(mut locals: Locals<'b, 'v>, out: usize) -> Option<&'b Operand<'b, 'v>> {
    for _ in 0..out {
        locals = locals?.outer;
    }
    locals.map(|local| &local.value)
}

impl<'v> Evaluation<'_, 'v> {
    pub(super) fn eval<'b>(&'b self, plan: &'b Plan, locals: Locals<'b, 'v>) -> Evaluated<'b, 'v> {
        self.budget.step(1)?;
        match plan {
            Plan::Literal(literal) => Ok(Operand::Cel(literal.to_val())),
            Plan::Type(name) => Ok(Operand::Cel(CowVal::Borrowed(name))),
            Plan::Undeclared(name) => Err(ExecutionError::undeclared_reference(name).into()),
            Plan::Var(at) => Ok(Operand::Json(self.vars[*at])),
            Plan::Node(at) => Ok(Operand::Json(self.nodes[*at])),
            Plan::Local(out) => match local(locals, *out) {
                Some(value) => Ok(value.lend()),
                None => Err(ExecutionError::undeclared_reference("@").into()),
            },
            Plan::OptionalOf(of) => {
                let value = self.eval(of, locals)?;
                Ok(Operand::owned(CelOptional::of(self.own(value)?)))
            }
            Plan::Select { of, field, test } => self.select(self.eval(of, locals)?, field, *test),
            Plan::List(items) => Ok(Operand::owned(CelList::from(self.items(items, locals)?))),
            Plan::Map(entries) => self.map(entries, locals),
            Plan::If(parts) => {
                let [condition, then, otherwise] = &**parts;
                let chosen = if self.eval(condition, locals)?.truth()? { then } else { otherwise };
                self.eval(chosen, locals)
            }
            Plan::Logic { absorbing, operands } => self.logic(*absorbing, operands, locals),
            Plan::Not(of) => {
                let value = self.eval(of, locals)?;
                match value.as_bool() {
                    Some(value) => Ok(Operand::boolean(!value)),
                    None => Err(ExecutionError::no_such_overload("!_", vec![value.type_name()]).into()),
                }
            }
            Plan::Negate(of) => self.negate(self.eval(of, locals)?),
            Plan::NotStrictlyFalse(of) => match self.eval(of, locals) {
                Ok(value) => Ok(Operand::boolean(value.as_bool().unwrap_or(true))),
                Err(Stop::Failed(_)) => Ok(Operand::boolean(true)),
                Err(exceeded) => Err(exceeded),
            },
            Plan::Equals { negated, operands } => {
                let [left, right] = self.both(operands, locals)?;
                Ok(Operand::boolean(self.equal(left, right)? != *negated))
            }
            Plan::Binary { operator, operands } => {
                let [left, right] = self.both(operands, locals)?;
                self.binary(*operator, left, right)
            }
            Plan::Index { optional, operands } => self.index(*optional, operands, locals),
            Plan::SelectOptional(operands) => self.select_optional(operands, locals),
            Plan::Call(call) => self.call(call, locals),
            Plan::Fold(fold) => self.fold(fold, locals),
        }
    }

    pub(super) fn both<'b>(
        &'b self,
        operands: &'b [Plan; 2],
        locals: Locals<'b, 'v>,
    ) -> Result<[Operand<'b, 'v>; 2], Stop> {
        Ok([self.eval(&operands[0], locals)?, self.eval(&operands[1], locals)?])
    }

    pub(super) fn items<'b>(
        &'b self,
        items: &'b [(Plan, bool)],
        locals: Locals<'b, 'v>,
    ) -> Result<Vec<Box<dyn Val + 'v>>, Stop> {
        let mut list = Vec::with_capacity(items.len());
        for (item, optional) in items {
            let value = self.eval(item, locals)?;
            if let Some(value) = present(value, *optional) {
                self.budget.make(VALUE_BYTES)?;
                list.push(self.own(value)?);
            }
        }
        Ok(list)
    }

    fn map<'b>(&'b self, entries: &'b [(Plan, Plan, bool)], locals: Locals<'b, 'v>) -> Evaluated<'b, 'v> {
        let mut map: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.cel(self.eval(key, locals)?)?;
            self.budget.copy(key.as_ref())?;
            let key: CelMapKey<'v> = key.try_into()?;
            let value = self.eval(value, locals)?;
            let Some(value) = present(value, *optional) else { continue };
            if has_key(&map, &key) {
                return Err(ExecutionError::DuplicateKey(cel::objects::Key::from(key).into()).into());
            }
            self.budget.make(ENTRY_BYTES)?;
            map.insert(key, self.own(value)?);
        }
        Ok(Operand::owned(CelMap::from(map)))
    }

    /// `||` and `&&`: an operand that decides does so even if the other one failed.
    fn logic<'b>(
        &'b self,
        absorbing: bool,
        operands: &'b [Plan; 2],
        locals: Locals<'b, 'v>,
    ) -> Evaluated<'b, 'v> {
        let left = match self.eval(&operands[0], locals) {
            Ok(value) => value.truth(),
            Err(Stop::Failed(error)) => Err(error),
            Err(exceeded) => return Err(exceeded),
        };
        if left == Ok(absorbing) {
            return Ok(Operand::boolean(absorbing));
        }
        let right = self.eval(&operands[1], locals)?;
        match (left, right.as_bool()) {
            (Ok(_), Some(value)) => Ok(Operand::boolean(value)),
            (Err(_), Some(value)) if value == absorbing => Ok(Operand::boolean(absorbing)),
            (left, _) => Err(logic_error(absorbing, left, &right).into()),
        }
    }

    fn negate<'b>(&'b self, value: Operand<'b, 'v>) -> Evaluated<'b, 'v> {
        let value = self.cel(value)?;
        let wrong = || ExecutionError::no_such_overload("-_", vec![value.get_type().name().to_owned()]);
        Ok(Operand::Cel(CowVal::Owned(value.as_negator().ok_or_else(wrong)?.negate()?)))
    }

    fn equal(&self, left: Operand<'_, 'v>, right: Operand<'_, 'v>) -> Result<bool, Exceeded> {
        let (left, right) = (self.cel(left)?, self.cel(right)?);
        self.charge_comparison(left.as_ref(), right.as_ref())?;
        Ok(left.as_ref().equals(right.as_ref()))
    }
}

/// The item of a list, or `None` for an item written `?item` that is an empty optional.
fn present<'b, 'v>(value: Operand<'b, 'v>, optional: bool) -> Option<Operand<'b, 'v>> {
    if !optional {
        return Some(value);
    }
    match unwrap(value) {
        Unwrapped::NotOptional(value) | Unwrapped::Some(value) => Some(value),
        Unwrapped::None => None,
    }
}

/// Whether a map has a key. `0` and `0u` are the same key.
fn has_key<T>(map: &HashMap<CelMapKey<'_>, T>, key: &CelMapKey<'_>) -> bool {
    let twin = match key {
        CelMapKey::Int(value) => u64::try_from(*value.inner()).ok().map(CelMapKey::from),
        CelMapKey::UInt(value) => i64::try_from(*value.inner()).ok().map(CelMapKey::from),
        CelMapKey::Bool(_) | CelMapKey::String(_) => None,
    };
    map.contains_key(key) || twin.is_some_and(|twin| map.contains_key(&twin))
}

fn logic_error(
    absorbing: bool,
    left: Result<bool, ExecutionError>,
    right: &Operand<'_, '_>,
) -> ExecutionError {
    let left = match left {
        Ok(_) => CelBool::TRUE.get_type().name().to_owned(),
        Err(ExecutionError::UnexpectedType { got, want }) if want == "bool" => got,
        Err(error) => return error,
    };
    let operator = if absorbing { "_||_" } else { "_&&_" };
    ExecutionError::no_such_overload(operator, vec![left, right.type_name()])
}
