//! Calls of functions: those that this module implements itself, and the library's, each charged before the call.

use cel::common::types::{CelInt, CelOptional, CelString, Kind};
use cel::common::value::CowVal;
use cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;

use super::budget::Exceeded;
use super::charge::Charge;
use super::distinct;
use super::environment::ENV;
use super::evaluate::{Evaluation, Stop};
use super::operand::{Evaluated, Operand, Unwrapped, unwrap};
use super::plan::{Call, argument_name};
use super::walk::Locals;

/// The implementation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    StartsWith,
    EndsWith,
    Contains,
    Matches,
    HasValue,
    Value,
    OrValue,
    Or,
    Distinct,
    /// The library's implementation.
    Library(Charge),
}

impl Function {
    pub(super) fn named(name: &str, is_member: bool, arguments: usize) -> Self {
        match (name, is_member, arguments) {
            ("size", _, 1) => Self::Size,
            ("startsWith", true, 2) => Self::StartsWith,
            ("endsWith", true, 2) => Self::EndsWith,
            ("contains", true, 2) => Self::Contains,
            ("matches", _, 2) => Self::Matches,
            ("hasValue", true, 1) => Self::HasValue,
            ("value", true, 1) => Self::Value,
            ("orValue", true, 2) => Self::OrValue,
            ("or", true, 2) => Self::Or,
            ("distinct", true, 1) => Self::Distinct,
            _ => Self::Library(Charge::named(name)),
        }
    }
}

impl<'v> Evaluation<'_, 'v> {
    pub(super) fn call<'b>(&'b self, call: &'b Call, locals: Locals<'b, 'v>) -> Evaluated<'b, 'v> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        // The target is evaluated last, as in the library: of two errors, the argument's is reported.
        let (target, rest) = call.arguments.split_at(usize::from(call.is_member));
        for argument in rest {
            arguments.push(self.eval(argument, locals)?);
        }
        if let [target] = target {
            arguments.insert(0, self.eval(target, locals)?);
        }
        match call.function {
            Function::Library(charge) => self.library(call, charge, arguments),
            Function::HasValue | Function::Value | Function::OrValue | Function::Or => {
                self.of_optional(call, arguments)
            }
            Function::Distinct => {
                let list = self.cel(arguments.swap_remove(0))?;
                match distinct::distinct(list, self.budget)? {
                    Ok(value) => Ok(Operand::Cel(value)),
                    Err(other) => Err(wrong_types(call, &[Operand::Cel(other)]).into()),
                }
            }
            _ => match self.of_text(call, &arguments)? {
                Some(value) => Ok(value),
                None => self.library(call, Charge::Linear, arguments),
            },
        }
    }

    /// Functions of one or two texts; `None` if the arguments are something else.
    fn of_text<'b>(
        &'b self,
        call: &'b Call,
        arguments: &[Operand<'b, 'v>],
    ) -> Result<Option<Operand<'b, 'v>>, Stop> {
        if call.function == Function::Size {
            return Ok(self.size(&arguments[0])?.map(|size| Operand::owned(CelInt::from(size as i64))));
        }
        let [Some(text), Some(part)] = [text(&arguments[0]), text(&arguments[1])] else { return Ok(None) };
        let answer = match call.function {
            Function::StartsWith => {
                self.budget.scan(part.len() as u64)?;
                text.starts_with(part)
            }
            Function::EndsWith => {
                self.budget.scan(part.len() as u64)?;
                text.ends_with(part)
            }
            Function::Contains => {
                self.budget.scan(4 * (text.len() + part.len()) as u64)?;
                text.contains(part)
            }
            Function::Matches => self.matches(call, text, part)?,
            _ => return Ok(None),
        };
        Ok(Some(Operand::boolean(answer)))
    }

    fn size(&self, of: &Operand<'_, 'v>) -> Result<Option<usize>, Exceeded> {
        if let Some(text) = text(of) {
            self.budget.scan(text.len() as u64)?;
            return Ok(Some(text.chars().count()));
        }
        Ok(match of {
            Operand::Json(Value::Array(list)) => Some(list.len()),
            Operand::Json(Value::Object(map)) => Some(map.len()),
            Operand::Cel(value) if matches!(value.get_type().kind(), Kind::List | Kind::Map) => {
                value.as_sizer().and_then(|sizer| usize::try_from(*sizer.size().inner()).ok())
            }
            _ => None,
        })
    }

    fn of_optional<'b>(&'b self, call: &Call, mut arguments: Vec<Operand<'b, 'v>>) -> Evaluated<'b, 'v> {
        let fits = arguments.iter().enumerate().all(|(at, argument)| {
            let is_any = call.function == Function::OrValue && at == 1;
            is_any || is_optional(argument)
        });
        if !fits {
            return Err(wrong_types(call, &arguments).into());
        }
        let other = (arguments.len() > 1).then(|| arguments.swap_remove(1));
        let optional = arguments.swap_remove(0);
        if call.function == Function::Or {
            let is_empty = matches!(unwrap(optional.lend()), Unwrapped::None);
            return Ok(other.filter(|_| is_empty).unwrap_or(optional));
        }
        let inside = match unwrap(optional) {
            Unwrapped::Some(inside) => Some(inside),
            Unwrapped::NotOptional(_) | Unwrapped::None => None,
        };
        match call.function {
            Function::HasValue => Ok(Operand::boolean(inside.is_some())),
            _ => inside
                .or(other)
                .ok_or_else(|| ExecutionError::function_error("value", "optional.none() dereference").into()),
        }
    }

    fn library<'b>(
        &'b self,
        call: &'b Call,
        charge: Charge,
        arguments: Vec<Operand<'b, 'v>>,
    ) -> Evaluated<'b, 'v> {
        let arguments: Vec<CowVal<'b, 'v>> =
            arguments.into_iter().map(|argument| self.cel(argument)).collect::<Result<_, _>>()?;
        charge.before(&arguments, self.budget)?;
        if call.is_member { self.member(call, arguments) } else { global(call, arguments) }
    }

    /// Calls a member function. The library does not list its member functions, but evaluates calls of them.
    fn member<'b>(&'b self, call: &'b Call, arguments: Vec<CowVal<'b, 'v>>) -> Evaluated<'b, 'v> {
        let mut context: Context<'_, 'v> = Context::with_env(ENV.clone());
        for (at, argument) in arguments.into_iter().enumerate() {
            let argument = self.own(Operand::Cel(argument))?;
            context.add_variable_as_val(argument_name(at), argument);
        }
        let value = Cel::resolve_val(&call.delegate, &context)?.into_owned();
        Ok(Operand::Cel(CowVal::Owned(value)))
    }
}

fn global<'b, 'v>(call: &Call, arguments: Vec<CowVal<'b, 'v>>) -> Evaluated<'b, 'v> {
    match ENV.find_overload(&call.name, &arguments) {
        Some(function) => Ok(Operand::Cel(function(arguments)?)),
        None => {
            let arguments: Vec<_> = arguments.into_iter().map(Operand::Cel).collect();
            Err(wrong_types(call, &arguments).into())
        }
    }
}

fn wrong_types(call: &Call, arguments: &[Operand<'_, '_>]) -> ExecutionError {
    let types = arguments.iter().map(Operand::type_name).collect();
    if call.is_member {
        ExecutionError::no_such_member_overload(&call.name, types)
    } else {
        ExecutionError::no_such_overload(&call.name, types)
    }
}

fn text<'r>(operand: &'r Operand<'_, '_>) -> Option<&'r str> {
    match operand {
        Operand::Json(value) => value.as_str(),
        Operand::Cel(value) => value.downcast_ref::<CelString<'_>>().map(CelString::inner),
    }
}

fn is_optional(operand: &Operand<'_, '_>) -> bool {
    matches!(operand, Operand::Cel(value) if value.downcast_ref::<CelOptional<'_>>().is_some())
}
