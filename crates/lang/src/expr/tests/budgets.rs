//! Expressions that would exhaust memory or time, and ordinary ones that must stay within the budget.

use std::time::Duration;

use super::*;

fn compiled(source: &str) -> Expr {
    Expr::compile(source, vars::NODE).unwrap_or_else(|error| panic!("{source}: {error:?}"))
}

fn large() -> Scope {
    let numbers: Vec<u32> = (0..10_000).collect();
    let orders: Vec<Value> = (0..10_000)
        .map(|n| json!({"id": format!("order-{n}"), "total": n, "tags": ["a", "b"], "note": "n".repeat(200)}))
        .collect();
    Scope::new(json!({
        "s": "a".repeat(1_000), "text": "ab".repeat(50_000), "digits": "01".repeat(50_000),
        "numbers": numbers, "orders": orders, "half": "\\w{50}",
    }))
}

/// The limit that stopped the expression.
fn exceeded(source: &str) -> Exceeded {
    let (scope, budget) = (large(), Budget::default());
    let answer = compiled(source).eval(&scope, &budget);
    let error = match answer {
        Err(error) => error,
        Ok(value) => {
            let text = value.to_string();
            panic!("{source}: {} bytes in {} steps: {:.100}", text.len(), budget.steps_used(), text)
        }
    };
    assert_eq!(error.exceeded, budget.exceeded(), "{source}: {error}");
    error.exceeded.unwrap_or_else(|| panic!("{source}: {error}"))
}

fn stops_at_bytes(source: &str) {
    assert_eq!(exceeded(source), Exceeded::Bytes { max: limits::EVALUATION_BYTES_MAX }, "{source}");
}

fn stops_at_steps(source: &str) {
    assert_eq!(exceeded(source), Exceeded::Steps { max: limits::EVALUATION_STEPS_MAX }, "{source}");
}

#[test]
fn replace_of_replace_is_stopped_before_it_allocates() {
    stops_at_bytes(&format!("input.s{}", ".replace('a', input.s)".repeat(8)));
    stops_at_bytes(&format!("input.s{}", ".replace('', input.s)".repeat(8)));
    stops_at_bytes(&format!("input.s{}", ".replace('a', input.s, 900000)".repeat(8)));
}

#[test]
fn texts_that_double_are_stopped() {
    stops_at_bytes(&format!("[input.s + input.s]{}", ".map(x, x + x)".repeat(28)));
    stops_at_bytes(&format!("[input.s]{}.size()", ".map(x, [x, x].join(x))".repeat(12)));
    stops_at_bytes(&format!("[input.s]{}.size()", ".map(x, '%s%s%s%s'.format([x, x, x, x]))".repeat(10)));
    stops_at_bytes("input.numbers.map(x, input.text)");
    stops_at_bytes("input.numbers.map(x, input.text.split(''))");
    stops_at_bytes("input.numbers.map(x, strings.quote(input.text))");
    stops_at_bytes("input.numbers.map(x, base64.encode(bytes(input.text)))");
    stops_at_bytes("input.numbers.map(x, input.text.lowerAscii().upperAscii().trim().reverse())");
}

#[test]
fn lists_that_grow_are_stopped() {
    stops_at_bytes("lists.range(1000000).map(x, lists.range(1000000))");
    stops_at_bytes("lists.range(1000000).map(x, lists.range(1000000).map(y, x * y))");
    stops_at_bytes(&format!("[input.numbers]{}.flatten()", ".map(x, x + x)".repeat(20)));
    stops_at_bytes("input.numbers.map(x, input.numbers)");
    stops_at_bytes("input.numbers.map(x, input.orders.sortBy(o, o.total))");
    stops_at_bytes("input.numbers.map(x, input.orders.reverse().slice(0, 5000))");
    stops_at_bytes("input.numbers.map(x, {'a': input.orders, 'b': {'c': input.orders}})");
    stops_at_bytes("input.numbers.map(x, optional.of(input.orders))");
}

#[test]
fn loops_in_loops_are_stopped() {
    stops_at_steps("input.numbers.all(x, input.numbers.all(y, x + y >= 0))");
    stops_at_steps("input.numbers.exists(x, input.numbers.exists_one(y, x == y && x < 0))");
    stops_at_steps("input.numbers.filter(x, input.numbers.filter(y, x == y).size() > 1)");
    exceeded("input.orders.all(x, input.orders.all(y, x == y || true))");
    stops_at_steps("input.orders.map(o, o.note).all(n, input.orders.all(o, o.note == n))");
    let deep = (0..10).fold("true".to_owned(), |inner, n| format!("input.numbers.all(x{n}, {inner})"));
    stops_at_steps(&deep);
}

#[test]
fn comparing_and_searching_is_counted_by_length() {
    stops_at_steps("input.numbers.all(x, !input.text.contains('ba' + 'c'))");
    stops_at_steps("input.numbers.all(x, input.text.indexOf(input.s) < 0)");
    exceeded("input.numbers.all(x, input.text + 'x' == input.text + 'x')");
    stops_at_steps("input.numbers.all(x, {'a': 1} in input.orders || true)");
    stops_at_steps("input.numbers.map(x, [x]).distinct().size() > 0");
}

#[test]
fn patterns_are_counted_by_their_size_and_the_text() {
    stops_at_steps("input.text.matches('((\\\\w{50}){50}){50}')");
    stops_at_steps("input.text.matches(input.half + '{1000}')");
    stops_at_steps("input.digits.matches('[01]*1[01]{900}x')");
    stops_at_steps("input.numbers.all(x, input.text.matches('^(a|b)*$'))");
    exceeded("input.numbers.all(x, input.s.matches('x' + string(x) + '\\\\w{9}') || true)");
    let error = compiled("'a'.matches('(')").eval(&scope(), &Budget::default()).unwrap_err();
    assert!(error.reason.starts_with("`matches`: '(' not a valid regex"), "{error}");
    assert_eq!(error.exceeded, None);
}

#[test]
fn what_swallows_errors_does_not_swallow_the_budget() {
    let endless = "input.numbers.all(x, input.numbers.all(y, x + y >= 0))";
    for source in [
        format!("{endless} || true"),
        format!("true && {endless} || true"),
        format!("!({endless} && false)"),
        format!("[1, 2].exists(z, {endless} || z == 2)"),
        format!("[1, 2].all(z, {endless} && z == 2) || true"),
        format!("[{endless}][?0].orValue(true)"),
        format!("{{'a': {endless}}}.?a.orValue(true)"),
        format!("{endless} ? 1 : 2"),
        format!("has({{'a': {endless}}}.a)"),
    ] {
        stops_at_steps(&source);
    }
}

#[test]
fn time_is_a_limit_of_its_own() {
    let asked = std::cell::Cell::new(0);
    let is_over = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let budget = Budget::default().with_time_limit(Duration::from_secs(5), &is_over);
    let error = compiled("input.numbers.all(x, x >= 0) || true").eval(&large(), &budget).unwrap_err();
    assert_eq!(error.exceeded, Some(Exceeded::Time { max: Duration::from_secs(5) }));
    assert!(budget.steps_used() > 4_000 || budget.exceeded().is_some());
}

#[test]
fn the_message_says_where_and_what() {
    let source = format!("'{}' + input.s.replace('a', input.s).replace('a', input.s)", "x".repeat(300));
    let error = compiled(&source).eval(&large(), &Budget::default()).unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.starts_with("`'xxx") && shown.contains("x…`: it makes more than 134217728 bytes"),
        "{shown}"
    );
}

#[test]
fn honest_work_on_ten_thousand_items_fits() {
    let scope = large();
    for source in [
        "input.orders.map(o, o.total * 2)",
        "input.orders.map(o, {'id': o.id, 'total': o.total, 'note': o.note, 'big': o.total > 500})",
        "input.orders.filter(o, o.total > 500 && o.id.startsWith('order-') && 'a' in o.tags)",
        "input.orders.map(o, o.id).join(', ')",
        "input.orders.sortBy(o, o.id).map(o, o.id)",
        "input.orders.map(o, o.note).distinct()",
        "input.orders.map(o, o.id).distinct().size()",
        "input.orders.filter(o, o.id.matches('^order-[0-9]{1,6}$'))",
        "input.orders.filter(o, o.id.matches('^[\\\\w-]{1,64}$')).size()",
        "input.orders.slice(0, 1000).all(o, o.total in input.numbers)",
        "input.orders.exists(o, o.total == 9999)",
        "input.orders.map(o, '%s: %d'.format([o.id, o.total]))",
        "input.orders.map(o, o.tags).flatten().size()",
        "input.text.replace('a', '<b>')",
        "input.text.split('').size()",
        "lists.range(100000).map(x, x * x).size()",
        "input.orders + input.orders == input.orders + input.orders",
    ] {
        let budget = Budget::default();
        let answer = compiled(source).eval(&scope, &budget);
        assert!(answer.is_ok(), "{source}: {}", answer.unwrap_err());
        let (steps, bytes) = (budget.steps_used(), budget.bytes_used());
        assert!(steps < limits::EVALUATION_STEPS_MAX / 2, "{source}: {steps} steps");
        assert!(bytes < limits::EVALUATION_BYTES_MAX / 2, "{source}: {bytes} bytes");
    }
}

#[test]
fn a_path_pays_for_its_copy() {
    let small = Budget::new(1_000, 100_000);
    let error = compiled("input.text").eval(&large(), &small).unwrap_err();
    assert_eq!(error.exceeded, Some(Exceeded::Bytes { max: 100_000 }));
    let one = Budget::new(10, 1_000);
    assert_eq!(compiled("input.orders[9999].total + 1").eval(&large(), &one).unwrap(), json!(10_000));
}
