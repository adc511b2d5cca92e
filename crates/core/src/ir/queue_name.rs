//! Names of queues: which workers execute a node.
//!
//! A function has a queue of its own, `function:enrich`, so that a worker gets the functions that it serves and no
//! others. A node with `queue: gpu` lies in `function.gpu` instead, with every function that names this queue. The two
//! forms differ, because a queue and a function may have the same name.

use std::sync::Arc;

/// The type of every `function` task, and the queue that functions without a queue of their own share.
pub const FUNCTION: &str = "function";

const OWN: &str = "function:";

/// The longest name of a function, or of a queue, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// Whether the text is a valid queue name: letters, digits, `_`, `-`, `.` and `:`.
pub fn is_queue_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && is_word(name)
}

/// Whether the text is a valid function name: like a queue name, optionally followed by `@` and a version.
pub fn is_function_name(name: &str) -> bool {
    let (function, version) = name.split_once('@').unwrap_or((name, "1"));
    name.len() <= NAME_BYTES_MAX && is_word(function) && is_word(version)
}

/// Whether the text is a function name, or a prefix of function names followed by `*`.
pub fn is_function_pattern(text: &str) -> bool {
    match text.strip_suffix('*') {
        None => is_function_name(text),
        Some(prefix) => prefix.is_empty() || is_function_name(prefix.strip_suffix('@').unwrap_or(prefix)),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))
}

/// The queue of a function.
pub fn of_function(function: &str) -> Arc<str> {
    format!("{OWN}{function}").into()
}

/// The function whose own queue this is.
pub fn function_of(queue: &str) -> Option<&str> {
    queue.strip_prefix(OWN)
}

/// The type of the tasks in a queue, as workers see it: `function` for a function's own queue, else the queue's name.
pub fn type_of(queue: &str) -> &str {
    if queue.starts_with(OWN) { FUNCTION } else { queue }
}

/// The queues of a type of task. `function` stands for every function without a `queue`.
pub fn of_type(kind: &str) -> Vec<Arc<str>> {
    match kind {
        FUNCTION => vec![FUNCTION.into(), of_function("*")],
        other => vec![other.into()],
    }
}

/// Whether a worker that asks for this queue or pattern takes turns between it and other function queues: the queue
/// whose first task has waited longest goes first.
pub fn takes_turns(wanted: &str) -> bool {
    wanted.strip_prefix(FUNCTION).is_some_and(|rest| !rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_follows_a_functions_name() {
        for good in ["enrich", "enrich@2", "team.enrich:x@2026-11", "e@v1.2"] {
            assert!(is_function_name(good), "{good}");
        }
        for bad in ["", "@2", "enrich@", "a@b@c", "a b", "a*", &"a".repeat(129)] {
            assert!(!is_function_name(bad), "{bad}");
        }
        assert!(
            ["*", "mail.*", "enrich@*", "enrich@2*", "enrich"].iter().all(|text| is_function_pattern(text))
        );
        assert!(!["", "a**", "@*", "a b*"].iter().any(|text| is_function_pattern(text)));
        assert!(is_queue_name("gpu") && !is_queue_name("gpu@2"));
    }

    #[test]
    fn a_queue_and_a_function_of_the_same_name_are_two() {
        assert_eq!(&*of_function("gpu"), "function:gpu");
        assert_eq!(function_of("function:enrich@2"), Some("enrich@2"));
        assert_eq!(function_of("function.gpu"), None);
        assert_eq!((type_of("function:gpu"), type_of("function.gpu")), ("function", "function.gpu"));
        assert_eq!(of_type("function"), ["function".into(), "function:*".into()]);
        let turns = ["function", "function:a", "function:*", "function*"].map(takes_turns);
        assert_eq!((turns, takes_turns("function.gpu"), takes_turns("http")), ([true; 4], false, false));
    }
}
