//! Compares the memory that evaluations allocate with the bytes they were charged for.

use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use serde_json::json;
use switchyard_lang::expr::vars;
use switchyard_lang::{Budget, Expr, NodeView, Scope};

mod random;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const BYTES_MAX: u64 = 1024 * 1024;

/// How far the estimate of a value's size may be off, and the memory that every evaluation takes.
const FACTOR: usize = 4;
const SLACK: usize = 256 * 1024;

fn scope() -> Scope {
    let numbers: Vec<u32> = (0..200).collect();
    let mut scope = Scope::new(json!({
        "n": 7, "f": 1.5e300, "big": u64::MAX, "name": "Ada, Bob, Eve; ".repeat(200), "list": numbers,
        "z": {"b": [1, 2, 3], "a": "x".repeat(3_000)},
    }));
    scope.set_run("run_1", "flow", 1, None);
    let output = json!({"risk": 2, "body": {"items": vec!["item"; 100]}});
    scope.set_node("a", NodeView { status: "succeeded".into(), output, error: json!(null) });
    scope
}

/// The peak of memory in use during `work`, above the use before.
fn peak(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    work();
    ALLOCATOR.peak_usage().saturating_sub(before)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn no_evaluation_takes_much_more_than_its_budget(
        bytes in proptest::collection::vec(any::<u8>(), 1..80),
        depth in 2usize..5,
    ) {
        let source = random::expression(&bytes, depth);
        let Ok(expr) = Expr::compile(&source, vars::NODE) else { return Ok(()) };
        let scope = scope();
        let budget = Budget::new(1_000_000, BYTES_MAX);
        let peak = peak(|| drop(expr.eval(&scope, &budget)));
        let charged = budget.exceeded().map_or(budget.bytes_used(), |_| BYTES_MAX) as usize;
        prop_assert!(peak <= FACTOR * charged + SLACK, "{}: {} bytes for {}", source, peak, charged);
    }
}
