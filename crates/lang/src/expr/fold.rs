//! The loops of `map`, `filter`, `all`, `exists`, `exists_one`, and of macros that bind a value to a name.

use cel::ExecutionError;
use cel::common::types::{CelList, CelString};
use cel::common::value::{CowVal, Val};
use serde_json::Value;

use super::cost::VALUE_BYTES;
use super::evaluate::{Evaluation, Stop};
use super::operand::{Evaluated, Operand};
use super::plan::{Fold, FoldBody, Plan};
use super::walk::{Local, Locals};

/// The accumulating loop of a macro.
struct Loop<'b> {
    condition: &'b Plan,
    step: &'b Plan,
    result: &'b Plan,
    absorbing: Option<bool>,
}

impl<'v> Evaluation<'_, 'v> {
    pub(super) fn fold<'b>(&'b self, fold: &'b Fold, locals: Locals<'b, 'v>) -> Evaluated<'b, 'v> {
        match &fold.body {
            FoldBody::Append { guard, items } => {
                let range = self.eval(&fold.range, locals)?;
                let mut list: Vec<Box<dyn Val + 'v>> = Vec::new();
                self.each(&range, &mut |element| {
                    let local = Local { value: element, outer: locals };
                    if let Some(guard) = guard
                        && !self.eval(guard, Some(&local))?.truth()?
                    {
                        return Ok(true);
                    }
                    self.budget.make(VALUE_BYTES)?;
                    list.append(&mut self.items(items, Some(&local))?);
                    Ok(true)
                })?;
                Ok(Operand::owned(CelList::from(list)))
            }
            FoldBody::Accumulate { start, condition, step, result, absorbing } => {
                let start = self.keep(self.eval(start, locals)?)?;
                let range = self.eval(&fold.range, locals)?;
                let body = Loop { condition, step, result, absorbing: *absorbing };
                self.accumulate(&body, start, &range, locals)
            }
        }
    }

    /// Runs the loop of a macro. An error in one element of `all` or `exists` counts only if no other element decides.
    fn accumulate<'b, 'r>(
        &self,
        body: &Loop<'b>,
        start: Operand<'r, 'v>,
        range: &Operand<'_, 'v>,
        locals: Locals<'b, 'v>,
    ) -> Evaluated<'r, 'v> {
        let mut accumulator = start;
        let mut pending: Option<ExecutionError> = None;
        self.each(range, &mut |element| {
            let outer = Local { value: accumulator.lend(), outer: locals };
            if !self.eval(body.condition, Some(&outer))?.truth()? {
                return Ok(false);
            }
            let local = Local { value: element, outer: Some(&outer) };
            let next = match self.eval(body.step, Some(&local)) {
                Err(Stop::Failed(error)) if body.absorbing.is_some() => {
                    pending = Some(error);
                    return Ok(true);
                }
                other => other?,
            };
            if pending.is_some() && next.as_bool() != body.absorbing {
                return Ok(true);
            }
            pending = None;
            let next = self.keep(next)?;
            accumulator = next;
            Ok(true)
        })?;
        if let Some(error) = pending {
            return Err(error.into());
        }
        let last = Local { value: accumulator.lend(), outer: locals };
        let result = self.eval(body.result, Some(&last))?;
        Ok(self.keep(result)?)
    }

    /// Calls `visit` with every element of a list or key of a map, until `visit` returns false.
    fn each<'r>(
        &self,
        range: &'r Operand<'_, 'v>,
        visit: &mut dyn FnMut(Operand<'r, 'v>) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        match range {
            Operand::Json(Value::Array(list)) => {
                for item in list {
                    if !self.visit(Operand::Json(item), visit)? {
                        break;
                    }
                }
            }
            Operand::Json(Value::Object(map)) => {
                for key in map.keys() {
                    if !self.visit(Operand::owned(CelString::from(key.as_str())), visit)? {
                        break;
                    }
                }
            }
            Operand::Cel(value) if value.as_iterable().is_some() => {
                let mut items = value.as_iterable().map(|iterable| iterable.iter());
                while let Some(item) = items.as_mut().and_then(|items| items.next()) {
                    if !self.visit(Operand::Cel(CowVal::Borrowed(item)), visit)? {
                        break;
                    }
                }
            }
            other => {
                let (got, want) = (other.type_name(), "iterable".to_owned());
                return Err(ExecutionError::UnexpectedType { got, want }.into());
            }
        }
        Ok(())
    }

    fn visit<'r>(
        &self,
        element: Operand<'r, 'v>,
        visit: &mut dyn FnMut(Operand<'r, 'v>) -> Result<bool, Stop>,
    ) -> Result<bool, Stop> {
        self.budget.step(1)?;
        visit(element)
    }
}
