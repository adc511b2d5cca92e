//! Collects what an expression mentions, and refuses what it may not use.

use cel::common::ast::{CallExpr, EntryExpr, Expr as Ast, LiteralValue, operators};
use cel::{Context, ExecutionError, IdedExpr, Value};
use switchyard_base::suggest;

use super::environment::{ENV, guarded};
use super::{BadExpr, Refs, Vars};

/// First words of qualified function names.
pub(super) const NAMESPACES: [&str; 5] = ["base64", "lists", "math", "optional", "strings"];

/// Names of types, which stand for themselves: `type(x) == string`.
const TYPES: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
    "dyn",
];

/// Names for "did you mean" only: the environment decides which functions exist.
const FUNCTIONS: [&str; 42] = [
    "all",
    "bool",
    "bytes",
    "charAt",
    "contains",
    "distinct",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "exists",
    "exists_one",
    "filter",
    "flatten",
    "format",
    "getFullYear",
    "getHours",
    "has",
    "hasValue",
    "indexOf",
    "int",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "map",
    "matches",
    "orValue",
    "replace",
    "reverse",
    "size",
    "slice",
    "sort",
    "sortBy",
    "split",
    "startsWith",
    "string",
    "substring",
    "timestamp",
    "trim",
    "type",
    "uint",
    "upperAscii",
];

/// The depth of the tree, computed without recursion.
pub(super) fn depth(ast: &IdedExpr) -> usize {
    let mut deepest = 0;
    let mut todo = vec![(ast, 1)];
    while let Some((expr, depth)) = todo.pop() {
        deepest = deepest.max(depth);
        each_child(&expr.expr, &mut |child| todo.push((child, depth + 1)));
    }
    deepest
}

fn each_child<'a>(expr: &'a Ast, visit: &mut dyn FnMut(&'a IdedExpr)) {
    match expr {
        Ast::Call(call) => call.target.as_deref().into_iter().chain(&call.args).for_each(visit),
        Ast::Select(select) => visit(&select.operand),
        Ast::List(list) => list.elements.iter().for_each(visit),
        Ast::Map(map) => map.entries.iter().for_each(|entry| each_of_entry(&entry.expr, visit)),
        Ast::Struct(value) => value.entries.iter().for_each(|entry| each_of_entry(&entry.expr, visit)),
        Ast::Comprehension(fold) => {
            [&fold.iter_range, &fold.accu_init, &fold.loop_cond, &fold.loop_step, &fold.result]
                .into_iter()
                .for_each(visit);
        }
        Ast::Unspecified | Ast::Ident(_) | Ast::Literal(_) => {}
    }
}

fn each_of_entry<'a>(entry: &'a EntryExpr, visit: &mut dyn FnMut(&'a IdedExpr)) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            visit(&entry.key);
            visit(&entry.value);
        }
        EntryExpr::StructField(field) => visit(&field.value),
    }
}

/// Collects what `ast` mentions, or reports what it must not mention.
pub(super) fn check(ast: &IdedExpr, source: &str, allowed: Vars) -> Result<Refs, BadExpr> {
    let mut checker = Checker { source, allowed, bound: Vec::new(), refs: Refs::default() };
    checker.visit(ast)?;
    Ok(checker.refs)
}

struct Checker<'a> {
    source: &'a str,
    allowed: Vars,
    /// Variables of the enclosing macros, innermost last.
    bound: Vec<&'a str>,
    refs: Refs,
}

impl<'a> Checker<'a> {
    fn visit(&mut self, expr: &'a IdedExpr) -> Result<(), BadExpr> {
        if let Some(path) = path_of(&expr.expr).filter(|path| !self.bound.contains(&path[0]))
            && path.len() > 1
        {
            self.refs.paths.push(path.into_iter().map(str::to_owned).collect());
        }
        if let Some(name) = member(&expr.expr, "secrets")
            && self.sees("secrets")
        {
            self.refs.secrets.push(name.to_owned());
            if !self.refs.vars.contains(&"secrets") {
                self.refs.vars.push("secrets");
            }
            return Ok(());
        }
        if let Some(id) = node_reference(&expr.expr)
            && self.sees("nodes")
        {
            if !self.refs.nodes.iter().any(|known| known == id) {
                self.refs.nodes.push(id.to_owned());
            }
            return Ok(());
        }
        match &expr.expr {
            Ast::Ident(name) => self.variable(name),
            Ast::Call(call) => self.call(call),
            Ast::Comprehension(fold) => {
                self.visit(&fold.iter_range)?;
                self.visit(&fold.accu_init)?;
                let before = self.bound.len();
                self.bound.extend([fold.iter_var.as_str(), fold.accu_var.as_str()]);
                self.bound.extend(fold.iter_var2.as_deref());
                for inner in [&fold.loop_cond, &fold.loop_step, &fold.result] {
                    self.visit(inner)?;
                }
                self.bound.truncate(before);
                Ok(())
            }
            Ast::Struct(value) => Err(BadExpr::new(format!("unknown type `{}`", value.type_name))),
            other => {
                let mut children = Vec::new();
                each_child(other, &mut |child| children.push(child));
                children.into_iter().try_for_each(|child| self.visit(child))
            }
        }
    }

    /// Whether the name refers to the variable of the scope, and not to one of a macro.
    fn sees(&self, name: &str) -> bool {
        self.allowed.contains(&name) && !self.bound.contains(&name)
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<(), BadExpr> {
        let target = call.target.as_deref();
        let namespace = target.is_some_and(|target| self.is_namespace(target));
        if !exists(call, namespace) {
            let message = format!("unknown function `{}`", call.func_name);
            let hint = suggest::nearest(&call.func_name, FUNCTIONS);
            let error = BadExpr::new(message);
            return Err(match hint {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            });
        }
        if let Some(target) = target
            && !namespace
        {
            self.visit(target)?;
        }
        call.args.iter().try_for_each(|arg| self.visit(arg))
    }

    fn is_namespace(&self, target: &IdedExpr) -> bool {
        matches!(&target.expr, Ast::Ident(name) if NAMESPACES.contains(&name.as_str()) && !self.bound.contains(&name.as_str()))
    }

    fn variable(&mut self, name: &str) -> Result<(), BadExpr> {
        if self.bound.contains(&name) {
            return Ok(());
        }
        let Some(known) = self.allowed.iter().find(|known| **known == name) else {
            if TYPES.contains(&name) {
                return Ok(());
            }
            return Err(self.unknown(name));
        };
        if *known == "nodes" {
            return Err(BadExpr::new("`nodes` must be followed by the id of a node")
                .hint("write `nodes.<id>` or `nodes[\"<id>\"]` with the id as it is in the definition"));
        }
        if *known == "secrets" {
            return Err(BadExpr::new("`secrets` must be followed by the name of a secret")
                .hint("write `secrets.<name>` or `secrets[\"<name>\"]`"));
        }
        if !self.refs.vars.contains(known) {
            self.refs.vars.push(known);
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> BadExpr {
        let error = BadExpr::new(format!("unknown variable `{name}`"));
        if name == "secrets" {
            let places =
                "secrets can be used in `request` of an `http` node and `env` of a `command` node alone";
            return error.hint(places);
        }
        if let Some(id) = dashed_node(self.source) {
            return error.hint(format!("an id with a dash is written `nodes[\"{id}\"]`"));
        }
        match suggest::hint(name, self.allowed, "available here") {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// The keys of `a.b["c"]`, the variable first.
fn path_of(expr: &Ast) -> Option<Vec<&str>> {
    let mut keys = Vec::new();
    let mut expr = expr;
    loop {
        expr = match expr {
            Ast::Ident(name) => {
                keys.push(name.as_str());
                keys.reverse();
                return Some(keys);
            }
            Ast::Select(select) if !select.test => {
                keys.push(select.field.as_str());
                &select.operand.expr
            }
            Ast::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
                [of, IdedExpr { expr: Ast::Literal(LiteralValue::String(key)), .. }] => {
                    keys.push(key.inner());
                    &of.expr
                }
                _ => return None,
            },
            _ => return None,
        };
    }
}

/// The id in `nodes.x`, `nodes["x"]`, `nodes.?x` or `nodes[?"x"]`.
pub(super) fn node_reference(expr: &Ast) -> Option<&str> {
    member(expr, "nodes")
}

/// The same for any variable.
fn member<'e>(expr: &'e Ast, of: &str) -> Option<&'e str> {
    let is_variable = |expr: &IdedExpr| matches!(&expr.expr, Ast::Ident(name) if name == of);
    match expr {
        Ast::Select(select) if is_variable(&select.operand) => Some(&select.field),
        Ast::Call(call)
            if [operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT]
                .contains(&call.func_name.as_str()) =>
        {
            match call.args.as_slice() {
                [variable, IdedExpr { expr: Ast::Literal(LiteralValue::String(key)), .. }]
                    if is_variable(variable) =>
                {
                    Some(key.inner())
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The id that the author of `nodes.my-node` probably meant; CEL reads a subtraction.
fn dashed_node(source: &str) -> Option<&str> {
    let rest = &source[source.find("nodes.")? + "nodes.".len()..];
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len());
    let id = rest[..end].trim_end_matches('-');
    id.contains('-').then_some(id)
}

/// Whether a function exists: calls it without arguments and tells an unknown name from a wrong call.
fn exists(call: &CallExpr, namespace: bool) -> bool {
    if !call.func_name.starts_with(|c: char| c.is_alphabetic()) {
        return true;
    }
    let null = || IdedExpr { id: 0, expr: Ast::Literal(LiteralValue::Null) };
    let target = call.target.as_deref().map(|target| if namespace { target.clone() } else { null() });
    let probe =
        CallExpr { func_name: call.func_name.clone(), target: target.map(Box::new), args: Vec::new() };
    let probe = IdedExpr { id: 0, expr: Ast::Call(probe) };
    let context = Context::with_env(ENV.clone());
    let answer = guarded(|| Value::resolve(&probe, &context).err());
    !matches!(answer, Ok(Some(ExecutionError::UndeclaredReference(_))))
}
