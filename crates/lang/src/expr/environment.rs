//! The available functions, and the guarded parser.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use cel::{Env, IdedExpr, ParseErrors, extensions};

use super::BadExpr;
use crate::limits;

/// The standard library, and the string, list, math and base64 extensions.
pub(super) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    let declared = [
        env.add_extension(extensions::strings),
        env.add_extension(extensions::lists),
        env.add_extension(extensions::math),
        env.add_extension(extensions::encoders),
    ];
    // A conflict can only come from a new version of the library, and then the tests miss the function.
    debug_assert!(declared.iter().all(Result::is_ok), "{declared:?}");
    Arc::new(env)
});

/// Parses an expression, and refuses one that nests too deep to be walked on the stack.
pub(super) fn parse(source: &str) -> Result<IdedExpr, BadExpr> {
    refuse_deep_text(source)?;
    let parser = ENV.parser();
    let parsed = guarded(|| parser.parse(source));
    let ast = match parsed {
        Ok(Ok(ast)) => ast,
        Ok(Err(errors)) => return Err(syntax_error(&errors, source)),
        Err(()) => return Err(BadExpr::new("bad expression: the parser gave up")),
    };
    if super::check::depth(&ast) > limits::EXPRESSION_DEPTH_MAX {
        return Err(too_deep());
    }
    Ok(ast)
}

/// Catches panics. The CEL library is young: a panic in it must fail one expression, not a worker.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, ()> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| ())
}

fn too_deep() -> BadExpr {
    BadExpr::new(format!("the expression nests deeper than the limit of {}", limits::EXPRESSION_DEPTH_MAX))
        .hint("split it over several `transform` nodes")
}

/// Refuses text that nests too deep. The parser recurses for brackets and for prefix and ternary operators before its
/// tree can be checked.
fn refuse_deep_text(source: &str) -> Result<(), BadExpr> {
    let (mut open, mut prefixes, mut ternaries) = (0usize, 0usize, 0usize);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'?' => ternaries += 1,
            b'!' | b'-' => prefixes += 1,
            b' ' => continue,
            _ => prefixes = 0,
        }
        if open + prefixes + ternaries > limits::EXPRESSION_DEPTH_MAX {
            return Err(too_deep());
        }
        if !matches!(byte, b'!' | b'-') {
            prefixes = 0;
        }
    }
    Ok(())
}

/// The parser's message without its list of every expected token.
fn for_people(message: &str) -> String {
    let short = message.trim_start_matches("Syntax error:").split(" expecting {").next().unwrap_or_default();
    let plain = short.replace("'<EOF>'", "end of the expression");
    let plain = plain.replace("mismatched input", "unexpected").replace("extraneous input", "unexpected");
    plain.trim().chars().take(200).collect()
}

fn syntax_error(errors: &ParseErrors, source: &str) -> BadExpr {
    let Some(first) = errors.errors.first() else { return BadExpr::new("bad expression") };
    let (_, column) = first.pos;
    let error = format!("bad expression: {}, at its character {}", for_people(&first.msg), column.max(1));
    match likely_cause(source) {
        Some(hint) => BadExpr::new(error).hint(hint),
        None => BadExpr::new(error),
    }
}

/// A hint for syntax of other languages that this one writes differently.
fn likely_cause(source: &str) -> Option<&'static str> {
    let code = without_strings(source);
    let trimmed = code.trim();
    if trimmed.starts_with("{{") {
        return Some("an expression is written `${{ … }}`, or without any braces in `when` and `until`");
    }
    if trimmed.starts_with("${") {
        return Some("an expression has two braces: `${{ … }}`");
    }
    let single = code.replace("==", "").replace("!=", "").replace("<=", "").replace(">=", "");
    if single.contains('=') {
        return Some("values are compared with `==`");
    }
    let word = |word: &str| code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word);
    if word("and") || word("or") || word("not") {
        return Some("conditions are combined with `&&`, `||` and `!`");
    }
    None
}

/// The text without its quoted parts.
fn without_strings(source: &str) -> String {
    let (mut quote, mut escaped) = (None, false);
    let outside = source.chars().filter(|c| match quote {
        Some(open) => {
            if !escaped && *c == open {
                quote = None;
            }
            escaped = !escaped && *c == '\\';
            false
        }
        None => {
            if *c == '"' || *c == '\'' {
                quote = Some(*c);
            }
            true
        }
    });
    outside.collect()
}
