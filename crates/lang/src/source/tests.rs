use proptest::prelude::*;
use serde_json::json;

use super::*;

fn value(text: &str) -> Value {
    Tree::parse("t.yaml", text.as_bytes()).unwrap().0.into_value()
}

fn error(text: &str) -> String {
    Tree::parse("t.yaml", text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn yaml_and_json_say_the_same() {
    assert_eq!(
        value("a: 1\nb: [x, 'y', 1.5, true, ~, 0x10, -3, 1e3]"),
        json!({"a": 1, "b": ["x", "y", 1.5, true, null, 16, -3, 1000.0]})
    );
    assert_eq!(value(r#"{"a": {"b": [1, "2", null, false]}}"#), json!({"a": {"b": [1, "2", null, false]}}));
    assert_eq!(
        value("a: '1'\nb: no\nc: 12:30\nd: 1_000\ne: 18446744073709551615"),
        json!({"a": "1", "b": "no", "c": "12:30", "d": "1_000", "e": u64::MAX})
    );
}

#[test]
fn numbers_that_the_other_cannot_carry_are_read_alike() {
    for text in
        ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890", "0.1", "1e308"]
    {
        let json: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value(&format!("a: {text}")), json!({ "a": json }), "{text}");
    }
    assert!(serde_json::from_str::<Value>("1e999").is_err());
    assert!(
        error("a: 0xfffffffffffffffff")
            .starts_with("t.yaml:1:4: the number `0xfffffffffffffffff` is too large")
    );
}

#[test]
fn aliases_are_expanded() {
    assert_eq!(value("a: &x {b: 1}\nc: *x"), json!({"a": {"b": 1}, "c": {"b": 1}}));
}

#[test]
fn bad_texts_are_refused_with_a_place() {
    for (text, expected) in [
        ("", "t.yaml:1:1: the document is empty\n  hint: a workflow needs at least `name` and `nodes`"),
        ("a: 1\na: 2", "t.yaml:2:1: duplicate key `a`\n  hint: the first is at 1:1"),
        ("nodes:\n  x: {}\n  x: {}", "t.yaml:3:3: duplicate node id `x`\n  hint: the first is at 2:3"),
        (
            "a: 1\n---\nb: 2",
            "t.yaml:2:1: more than one document in the text\n  hint: put each workflow into a file of its own",
        ),
        ("1: a", "t.yaml:1:1: a key must be a string, this is a number\n  hint: put it in quotes"),
        (
            "a: .nan",
            "t.yaml:1:4: `.nan` is not a number that JSON can carry\n  hint: put it in quotes if it is meant as text",
        ),
        (
            "a: 1e999",
            "t.yaml:1:4: the number `1e999` is too large\n  hint: put it in quotes if it is meant as text",
        ),
        ("a: !ruby x", "t.yaml:1:4: the tag `!ruby` does not fit here\n  hint: remove it"),
        ("a: &x [*x]", "t.yaml:1:8: an alias inside the value it stands for"),
        (
            "a: {{ b }}",
            "t.yaml:1:5: a key must be a string\n  hint: quote text that starts with `{`, `[` or `${{`",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
    assert!(error("a: [1").starts_with("t.yaml:2:1: invalid YAML: "), "{}", error("a: [1"));
    assert!(error("a: b: c").starts_with("t.yaml:1:5: invalid YAML: "), "{}", error("a: b: c"));
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    let error = Tree::parse("t.yaml", b"name: \xff").unwrap_err().to_string();
    assert_eq!(
        error,
        "t.yaml: the definition is not UTF-8: bad byte at offset 6\n  hint: save the file with UTF-8 encoding"
    );
    let large = vec![b' '; limits::DEFINITION_BYTES_MAX + 1];
    let error = Tree::parse("t.yaml", &large).unwrap_err().to_string();
    assert!(error.starts_with("t.yaml: the definition has 16777217 bytes, more than the limit of 16777216"));
}

#[test]
fn nesting_is_limited_without_recursion() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Tree::parse("t", nested(64).as_bytes()).is_ok());
    assert_eq!(error(&nested(65)), "t.yaml:1:65: nested deeper than the limit of 64 levels");
    assert_eq!(error(&nested(100)), "t.yaml:1:65: nested deeper than the limit of 64 levels");
    assert!(error(&nested(100_000)).ends_with("nested deeper than the limit of 64 levels"));
    assert!(error(&"{a: ".repeat(100_000)).contains("nested deeper than the limit"));
    assert!(error(&"- ".repeat(100_000)).contains("nested deeper than the limit"));
    assert!(Tree::from_value(serde_json::from_str(&nested(64)).unwrap()).is_ok());
    assert!(Tree::from_value(serde_json::from_str(&nested(65)).unwrap()).is_err());
}

#[test]
fn a_billion_laughs_are_refused_quickly() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let list = vec![format!("*a{}", i - 1); 10].join(", ");
        text.push_str(&format!("a{i}: &a{i} [{list}]\n"));
    }
    assert!(error(&text).contains("more than 2000000 values, aliases expanded"));
}

#[test]
fn aliases_cannot_hide_depth() {
    let mut text = String::from("a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n");
    for i in 1..10 {
        text.push_str(&format!("a{i}: &a{i} [[[[[[[[[[*a{}]]]]]]]]]]\n", i - 1));
    }
    assert!(error(&text).contains("nested deeper than the limit"));
}

#[test]
fn ten_megabytes_are_read() {
    let text = format!("a: \"{}\"", "x".repeat(10 * 1024 * 1024));
    assert!(Tree::parse("t", text.as_bytes()).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Tree::parse("t", &bytes);
    }

    #[test]
    fn any_yaml_like_text_is_answered(text in "[\\[\\]{}a:,&*!|>'\"\\- \n#?0.~%\t\\\\é]{0,80}") {
        let _ = Tree::parse("t", text.as_bytes());
    }
}
