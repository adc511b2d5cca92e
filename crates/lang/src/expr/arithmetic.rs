//! `+ - * /` between integers and floats.
//!
//! CEL refuses `2 * 1.5`, and its checker would have said so beforehand. Ours are JSON's numbers, where a price is
//! `10` today and `10.5` tomorrow: an expression that works for one must work for the other. So the four operators
//! are renamed in the tree to functions of ours that widen the integer and otherwise do what CEL does.

use cel::common::ast::{EntryExpr, Expr as Ast, operators};
use cel::common::types::{CelDouble, CelInt, CelUInt, DYN_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, IdedExpr};

const RENAMED: [(&str, &str); 4] = [
    (operators::ADD, "@add"),
    (operators::SUBSTRACT, "@subtract"),
    (operators::MULTIPLY, "@multiply"),
    (operators::DIVIDE, "@divide"),
];

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let both = || vec![DYN_TYPE, DYN_TYPE];
    env.add_overload("@add", "add_widening", both(), add)?;
    env.add_overload("@subtract", "subtract_widening", both(), subtract)?;
    env.add_overload("@multiply", "multiply_widening", both(), multiply)?;
    env.add_overload("@divide", "divide_widening", both(), divide)
}

/// Renames the operators. The depth of the tree is bounded by then.
pub(super) fn soften(expr: &mut IdedExpr) {
    match &mut expr.expr {
        Ast::Call(call) => {
            // `@result + [x]` is how `map` and `filter` collect: CEL knows the pattern and does it in place.
            let collects = matches!(call.args.first(), Some(IdedExpr { expr: Ast::Ident(name), .. }) if name.starts_with('@'));
            if call.args.len() == 2
                && !collects
                && let Some((_, ours)) = RENAMED.iter().find(|(theirs, _)| *theirs == call.func_name)
            {
                call.func_name = (*ours).to_owned();
            }
            call.target.iter_mut().for_each(|target| soften(target));
            call.args.iter_mut().for_each(soften);
        }
        Ast::Select(select) => soften(&mut select.operand),
        Ast::List(list) => list.elements.iter_mut().for_each(soften),
        Ast::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    soften(&mut entry.key);
                    soften(&mut entry.value);
                }
            }
        }
        Ast::Comprehension(fold) => {
            [
                &mut fold.iter_range,
                &mut fold.accu_init,
                &mut fold.loop_cond,
                &mut fold.loop_step,
                &mut fold.result,
            ]
            .into_iter()
            .for_each(soften);
        }
        Ast::Unspecified | Ast::Ident(_) | Ast::Literal(_) | Ast::Struct(_) => {}
    }
}

type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn add<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    operate(args, "+", |a, b| a + b, |a, b| Some(a.as_adder()?.add(b).map(CowVal::into_owned)))
}

fn subtract<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    operate(args, "-", |a, b| a - b, |a, b| Some(a.as_subtractor()?.sub(b).map(CowVal::into_owned)))
}

fn multiply<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    operate(args, "*", |a, b| a * b, |a, b| Some(a.as_multiplier()?.mul(b).map(CowVal::into_owned)))
}

fn divide<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    operate(args, "/", |a, b| a / b, |a, b| Some(a.as_divider()?.div(b).map(CowVal::into_owned)))
}

type Theirs<'v> = Option<Result<Box<dyn Val + 'v>, ExecutionError>>;

fn operate<'b, 'v>(
    args: Args<'b, 'v>,
    symbol: &str,
    widened: fn(f64, f64) -> f64,
    theirs: for<'x> fn(&'x (dyn Val + 'v), &'x (dyn Val + 'v)) -> Theirs<'v>,
) -> Answer<'b, 'v> {
    let [left, right] = args.as_slice() else { return Err(ExecutionError::MissingArgumentOrTarget) };
    let (left, right) = (left.as_ref(), right.as_ref());
    let mixed = is_double(left) != is_double(right);
    if mixed && let (Some(left), Some(right)) = (as_double(left), as_double(right)) {
        return Ok(CowVal::owned(CelDouble::from(widened(left, right))));
    }
    let types = || vec![left.get_type().name().to_owned(), right.get_type().name().to_owned()];
    match theirs(left, right) {
        Some(Ok(value)) => Ok(CowVal::Owned(value)),
        Some(Err(ExecutionError::UnsupportedBinaryOperator(..))) | None => {
            Err(ExecutionError::no_such_overload(symbol, types()))
        }
        Some(Err(error)) => Err(error),
    }
}

fn is_double(value: &dyn Val) -> bool {
    value.downcast_ref::<CelDouble>().is_some()
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
