//! The tree that is evaluated: the CEL library's syntax tree with every name resolved.
//!
//! The library provides the parser, the types and the functions; it does not evaluate, because its interpreter takes no
//! budget. The planner looks up operators, variables and functions once, when an expression is compiled.

use std::sync::OnceLock;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr as Ast, ListExpr, LiteralValue, operators,
};
use cel::common::types::CelType;
use cel::{Context, ExecutionError, IdedExpr, Value as Cel};

use super::environment::{ENV, guarded};
use super::function::Function;
use super::pattern::Pattern;
use super::{BadExpr, Refs, check};

#[derive(Debug)]
pub(super) enum Plan {
    Literal(LiteralValue),
    /// The name of a type, which stands for itself.
    Type(CelType),
    /// An allowed name without a meaning: the library has types that it does not name.
    Undeclared(String),
    /// A variable of the scope, by its index in [`Refs::vars`].
    Var(usize),
    /// `nodes.<id>`, by its index in [`Refs::nodes`].
    Node(usize),
    /// A variable of a macro: how many variables further out than the innermost.
    Local(usize),
    OptionalOf(Box<Plan>),
    Select {
        of: Box<Plan>,
        field: String,
        test: bool,
    },
    /// A list; the flag tells whether the item is written `?item`.
    List(Vec<(Plan, bool)>),
    /// A map; the flag tells whether the entry is written `?key: value`.
    Map(Vec<(Plan, Plan, bool)>),
    If(Box<[Plan; 3]>),
    Logic {
        absorbing: bool,
        operands: Box<[Plan; 2]>,
    },
    Not(Box<Plan>),
    Negate(Box<Plan>),
    NotStrictlyFalse(Box<Plan>),
    Equals {
        negated: bool,
        operands: Box<[Plan; 2]>,
    },
    Binary {
        operator: Binary,
        operands: Box<[Plan; 2]>,
    },
    Index {
        optional: bool,
        operands: Box<[Plan; 2]>,
    },
    SelectOptional(Box<[Plan; 2]>),
    Call(Box<Call>),
    Fold(Box<Fold>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    In,
}

impl Binary {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            operators::ADD => Self::Add,
            operators::SUBSTRACT => Self::Subtract,
            operators::MULTIPLY => Self::Multiply,
            operators::DIVIDE => Self::Divide,
            operators::MODULO => Self::Modulo,
            operators::LESS => Self::Less,
            operators::LESS_EQUALS => Self::LessEquals,
            operators::GREATER => Self::Greater,
            operators::GREATER_EQUALS => Self::GreaterEquals,
            operators::IN => Self::In,
            _ => return None,
        })
    }

    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Less => "<",
            Self::LessEquals => "<=",
            Self::Greater => ">",
            Self::GreaterEquals => ">=",
            Self::In => "in",
        }
    }
}

/// A call of a function.
#[derive(Debug)]
pub(super) struct Call {
    /// The function's name, with its namespace if it has one: `math.ceil`.
    pub(super) name: String,
    pub(super) function: Function,
    /// The arguments; the target of a member function is the first.
    pub(super) arguments: Vec<Plan>,
    pub(super) is_member: bool,
    /// The same call with variables for arguments, for the library.
    pub(super) delegate: IdedExpr,
    /// The compiled pattern of `matches`, if it is a literal.
    pub(super) pattern: OnceLock<Pattern>,
    pub(super) has_literal_pattern: bool,
}

/// The name of an argument in [`Call::delegate`].
pub(super) fn argument_name(index: usize) -> String {
    format!("@{index}")
}

/// A macro's loop.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Plan,
    pub(super) body: FoldBody,
}

#[derive(Debug)]
pub(super) enum FoldBody {
    /// `map` and `filter`: collects into a list in place. The one local is the element.
    Append { guard: Option<Plan>, items: Vec<(Plan, bool)> },
    /// All other macros. The locals are the accumulator and, in `step`, the element.
    Accumulate {
        start: Plan,
        condition: Plan,
        step: Plan,
        result: Plan,
        /// For `all` and `exists`: the boolean that decides, even if other elements gave errors.
        absorbing: Option<bool>,
    },
}

pub(super) fn plan(ast: &IdedExpr, refs: &Refs) -> Result<Plan, BadExpr> {
    Planner { refs, bound: Vec::new() }.plan(ast)
}

struct Planner<'a> {
    refs: &'a Refs,
    /// Variables of the enclosing macros, innermost last.
    bound: Vec<&'a str>,
}

impl<'a> Planner<'a> {
    fn plan(&mut self, expr: &'a IdedExpr) -> Result<Plan, BadExpr> {
        if let Some(node) = self.node(expr) {
            return Ok(node);
        }
        Ok(match &expr.expr {
            Ast::Literal(value) => Plan::Literal(value.clone()),
            Ast::Ident(name) => self.variable(name),
            Ast::Select(select) => Plan::Select {
                of: self.boxed(&select.operand)?,
                field: select.field.clone(),
                test: select.test,
            },
            Ast::List(list) => Plan::List(self.items(list)?),
            Ast::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(unexpected()) };
                    entries.push((self.plan(&entry.key)?, self.plan(&entry.value)?, entry.optional));
                }
                Plan::Map(entries)
            }
            Ast::Call(call) => self.operator_or_call(call)?,
            Ast::Comprehension(fold) => Plan::Fold(Box::new(self.fold(fold)?)),
            Ast::Struct(_) | Ast::Unspecified => return Err(unexpected()),
        })
    }

    fn boxed(&mut self, expr: &'a IdedExpr) -> Result<Box<Plan>, BadExpr> {
        self.plan(expr).map(Box::new)
    }

    fn items(&mut self, list: &'a ListExpr) -> Result<Vec<(Plan, bool)>, BadExpr> {
        let items = list.elements.iter().enumerate();
        items.map(|(at, item)| Ok((self.plan(item)?, list.optional_indices.contains(&at)))).collect()
    }

    /// Plans `nodes.x` in all its forms. A node that an expression mentions exists when the expression is evaluated.
    fn node(&self, expr: &IdedExpr) -> Option<Plan> {
        if self.bound.contains(&"nodes") {
            return None;
        }
        let id = check::node_reference(&expr.expr)?;
        let node = Plan::Node(self.refs.nodes.iter().position(|known| known == id)?);
        Some(match &expr.expr {
            Ast::Select(select) if select.test => Plan::Literal(LiteralValue::Boolean(true.into())),
            Ast::Call(call) if call.func_name != operators::INDEX => Plan::OptionalOf(Box::new(node)),
            _ => node,
        })
    }

    fn variable(&self, name: &str) -> Plan {
        if let Some(out) = self.bound.iter().rev().position(|bound| *bound == name) {
            return Plan::Local(out);
        }
        if let Some(at) = self.refs.vars.iter().position(|var| *var == name) {
            return Plan::Var(at);
        }
        match ENV.types().find_type(name) {
            Some(found) => Plan::Type(CelType::from(found)),
            None => Plan::Undeclared(name.to_owned()),
        }
    }

    fn operator_or_call(&mut self, call: &'a CallExpr) -> Result<Plan, BadExpr> {
        let name = call.func_name.as_str();
        Ok(match call.args.as_slice() {
            [a, b, c] if name == operators::CONDITIONAL => {
                Plan::If(Box::new([self.plan(a)?, self.plan(b)?, self.plan(c)?]))
            }
            [a, b] => {
                let Some(make) = operator_of_two(name) else { return self.call(call) };
                make(Box::new([self.plan(a)?, self.plan(b)?]))
            }
            [a] if name == operators::LOGICAL_NOT => Plan::Not(self.boxed(a)?),
            [a] if name == operators::NEGATE => Plan::Negate(self.boxed(a)?),
            [a] if name == operators::NOT_STRICTLY_FALSE => Plan::NotStrictlyFalse(self.boxed(a)?),
            _ => self.call(call)?,
        })
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<Plan, BadExpr> {
        let target = call.target.as_deref();
        let namespace = target.and_then(|target| namespace(target, &call.func_name));
        let target = target.filter(|_| namespace.is_none());
        let name = match namespace {
            Some(namespace) => format!("{namespace}.{}", call.func_name),
            None => call.func_name.clone(),
        };
        let all = target.into_iter().chain(&call.args);
        let arguments: Vec<Plan> = all.map(|expr| self.plan(expr)).collect::<Result<_, _>>()?;
        Ok(Plan::Call(Box::new(Call {
            function: Function::named(&name, target.is_some(), arguments.len()),
            delegate: delegate(&call.func_name, target.is_some(), arguments.len()),
            is_member: target.is_some(),
            has_literal_pattern: matches!(arguments.last(), Some(Plan::Literal(_))),
            pattern: OnceLock::new(),
            arguments,
            name,
        })))
    }

    fn fold(&mut self, fold: &'a ComprehensionExpr) -> Result<Fold, BadExpr> {
        let range = self.plan(&fold.iter_range)?;
        let body = match Append::of(fold) {
            Some(append) => {
                self.bound.push(&fold.iter_var);
                let guard = append.guard.map(|guard| self.plan(guard)).transpose();
                let items = self.items(append.items);
                self.bound.pop();
                FoldBody::Append { guard: guard?, items: items? }
            }
            None => {
                let start = self.plan(&fold.accu_init)?;
                self.bound.push(&fold.accu_var);
                let (condition, result) = (self.plan(&fold.loop_cond), self.plan(&fold.result));
                self.bound.push(&fold.iter_var);
                let step = self.plan(&fold.loop_step);
                self.bound.truncate(self.bound.len() - 2);
                FoldBody::Accumulate {
                    start,
                    condition: condition?,
                    step: step?,
                    result: result?,
                    absorbing: absorbing(fold),
                }
            }
        };
        Ok(Fold { range, body })
    }
}

type OfTwo = Box<dyn FnOnce(Box<[Plan; 2]>) -> Plan>;

fn operator_of_two(name: &str) -> Option<OfTwo> {
    if let Some(operator) = Binary::named(name) {
        return Some(Box::new(move |operands| Plan::Binary { operator, operands }));
    }
    Some(match name {
        operators::LOGICAL_OR => Box::new(|operands| Plan::Logic { absorbing: true, operands }),
        operators::LOGICAL_AND => Box::new(|operands| Plan::Logic { absorbing: false, operands }),
        operators::EQUALS => Box::new(|operands| Plan::Equals { negated: false, operands }),
        operators::NOT_EQUALS => Box::new(|operands| Plan::Equals { negated: true, operands }),
        operators::INDEX => Box::new(|operands| Plan::Index { optional: false, operands }),
        operators::OPT_INDEX => Box::new(|operands| Plan::Index { optional: true, operands }),
        operators::OPT_SELECT => Box::new(Plan::SelectOptional),
        _ => return None,
    })
}

fn unexpected() -> BadExpr {
    BadExpr::new("bad expression")
}

/// The namespace `math` in `math.ceil(1.5)`, where the target is no value but part of the function's name.
fn namespace<'a>(target: &'a IdedExpr, function: &str) -> Option<&'a str> {
    let Ast::Ident(name) = &target.expr else { return None };
    if !check::NAMESPACES.contains(&name.as_str()) {
        return None;
    }
    let probe =
        CallExpr { func_name: function.to_owned(), target: Some(Box::new(target.clone())), args: Vec::new() };
    let probe = IdedExpr { id: 0, expr: Ast::Call(probe) };
    let answer = guarded(|| Cel::resolve(&probe, &Context::with_env(ENV.clone())).err());
    (!matches!(answer, Ok(Some(ExecutionError::UndeclaredReference(_))))).then_some(name)
}

fn delegate(function: &str, is_member: bool, arguments: usize) -> IdedExpr {
    let argument = |at| IdedExpr { id: 0, expr: Ast::Ident(argument_name(at)) };
    let call = CallExpr {
        func_name: function.to_owned(),
        target: is_member.then(|| Box::new(argument(0))),
        args: (usize::from(is_member)..arguments).map(argument).collect(),
    };
    IdedExpr { id: 0, expr: Ast::Call(call) }
}

/// The loop of `map` and `filter`: `@result + [item]`, or `guard ? @result + [item] : @result`.
struct Append<'a> {
    guard: Option<&'a IdedExpr>,
    items: &'a ListExpr,
}

impl<'a> Append<'a> {
    fn of(fold: &'a ComprehensionExpr) -> Option<Self> {
        let is_accumulator =
            |expr: &IdedExpr| matches!(&expr.expr, Ast::Ident(name) if *name == fold.accu_var);
        let starts_empty = matches!(&fold.accu_init.expr, Ast::List(list) if list.elements.is_empty());
        let is_endless =
            matches!(&fold.loop_cond.expr, Ast::Literal(LiteralValue::Boolean(value)) if *value.inner());
        if !starts_empty || !is_endless || !is_accumulator(&fold.result) {
            return None;
        }
        let items = |expr: &'a IdedExpr| match &expr.expr {
            Ast::Call(call) if call.func_name == operators::ADD => match call.args.as_slice() {
                [left, IdedExpr { expr: Ast::List(items), .. }] if is_accumulator(left) => Some(items),
                _ => None,
            },
            _ => None,
        };
        match &fold.loop_step.expr {
            Ast::Call(call) if call.func_name == operators::CONDITIONAL => match call.args.as_slice() {
                [guard, step, otherwise] if is_accumulator(otherwise) => {
                    Some(Self { guard: Some(guard), items: items(step)? })
                }
                _ => None,
            },
            _ => Some(Self { guard: None, items: items(&fold.loop_step)? }),
        }
    }
}

/// `@result && x` ends at the first false, `@result || x` at the first true.
fn absorbing(fold: &ComprehensionExpr) -> Option<bool> {
    let Ast::Call(call) = &fold.loop_step.expr else { return None };
    let of_accumulator =
        matches!(call.args.first(), Some(IdedExpr { expr: Ast::Ident(name), .. }) if *name == fold.accu_var);
    match call.func_name.as_str() {
        operators::LOGICAL_AND if of_accumulator => Some(false),
        operators::LOGICAL_OR if of_accumulator => Some(true),
        _ => None,
    }
}
