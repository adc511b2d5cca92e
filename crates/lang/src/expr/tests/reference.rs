//! The CEL library's own interpreter, without a budget, as the reference for this crate's walker.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use cel::common::types::{CelMap, CelMapKey};
use cel::common::value::Val;
use cel::{Context, ExecutionError, IdedExpr, Value as Cel};

use super::super::environment::{ENV, guarded, parse};
use super::super::{check, convert, operand::Operand};
use super::*;

#[path = "../../../tests/random/mod.rs"]
mod random;

use random::expression;

/// The library's answer. `None` if it has none to compare with.
fn by_the_library(source: &str, scope: &Scope) -> Option<Result<Value, ()>> {
    let ast = parse(source).ok()?;
    let refs = check::check(&ast, source, vars::NODE).ok()?;
    resolve(&ast, &refs, scope)
}

fn resolve(ast: &IdedExpr, refs: &Refs, scope: &Scope) -> Option<Result<Value, ()>> {
    let mut context = Context::with_env(ENV.clone());
    for name in &refs.vars {
        context.add_variable_as_val(*name, convert::from_json(scope.var(name).ok()?));
    }
    if !refs.nodes.is_empty() {
        let mut nodes: HashMap<CelMapKey<'_>, Box<dyn Val + '_>> = HashMap::new();
        for id in &refs.nodes {
            nodes.insert(CelMapKey::from(id.as_str()), convert::from_json(scope.node(id).ok()?));
        }
        context.add_variable_as_val("nodes", Box::new(CelMap::from(nodes)));
    }
    match guarded(|| Cel::resolve_val(ast, &context)).ok()? {
        Ok(value) => Some(convert::to_json(Operand::Cel(value), &Budget::default()).map_err(|_| ())),
        // This crate widens an integer here.
        Err(ExecutionError::UnsupportedBinaryOperator(..)) => None,
        Err(_) => Some(Err(())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// The walker gives the value that the library gives, and fails where it fails.
    #[test]
    fn the_walker_agrees_with_the_library(bytes in proptest::collection::vec(any::<u8>(), 1..60), depth in 1usize..4) {
        let source = expression(&bytes, depth);
        let Ok(ours) = Expr::compile(&source, vars::NODE) else { return Ok(()) };
        let (scope, budget) = (scope(), Budget::default());
        let Some(theirs) = by_the_library(&source, &scope) else { return Ok(()) };
        match (ours.eval(&scope, &budget), theirs) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs, "{}", source),
            (Err(_), Err(())) => {}
            (ours, theirs) => prop_assert!(false, "{}: {:?} and not {:?}", source, ours, theirs),
        }
    }
}

/// Measures ordinary expressions in this crate's walker and in the library's interpreter.
///
/// `cargo test -p switchyard-lang --lib -- --ignored --nocapture beside_the_library`
#[test]
#[ignore = "a measurement, not a check"]
#[expect(clippy::print_stderr, reason = "its output is what it is for")]
fn speed_beside_the_library() {
    let orders: Vec<Value> =
        (0..100).map(|n| json!({"id": format!("o{n}"), "total": n, "tags": ["a"]})).collect();
    let mut scope = Scope::new(json!({"n": 2, "name": "Ada", "orders": orders}));
    scope.set_run("run_1", "flow", 1, None);
    let mut table = String::new();
    for source in [
        "input.n + 1",
        "input.n > 1 && input.name != ''",
        "'https://example.com/' + input.name",
        "has(input.missing) ? 1 : 2",
        "input.name.startsWith('A')",
        "input.name.lowerAscii()",
        "input.name.matches('^[a-zA-Z]+$')",
        "input.orders[50].total * 2",
        "input.orders.filter(o, o.total > 50)",
        "input.orders.map(o, o.total * 2)",
        "input.orders.map(o, {'id': o.id, 'big': o.total > 50})",
        "input.orders.sortBy(o, o.total).map(o, o.id).join(',')",
    ] {
        let expr = Expr::compile(source, vars::NODE).unwrap();
        let ast = parse(source).unwrap();
        let ours = time(|| drop(expr.eval(&scope, &Budget::default()).unwrap()));
        let theirs = time(|| drop(resolve(&ast, expr.refs(), &scope).unwrap().unwrap()));
        let _ = writeln!(
            table,
            "{:>9.2} µs  {:>9.2} µs  {source}",
            ours.as_secs_f64() * 1e6,
            theirs.as_secs_f64() * 1e6
        );
    }
    eprintln!("     here        library\n{table}");
}

/// The time of one evaluation, in the best of a few rounds.
fn time(work: impl Fn()) -> Duration {
    let rounds = (0..7).map(|_| {
        let began = Instant::now();
        for _ in 0..1_000 {
            work();
        }
        began.elapsed() / 1_000
    });
    rounds.min().unwrap_or_default()
}
