//! The scripts, as Redis runs them: one command a file, helpers from `includes/` put in where they are named.

use std::sync::LazyLock;

/// A script with its includes put in, named by the hash of its text: two releases can share one server.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) text: String,
    pub(crate) hash: String,
    /// Whether it writes. The answer to one that only reads can be lost without leaving anything unknown.
    pub(crate) changes: bool,
}

const INCLUDES: &[(&str, &str)] = &[
    ("arguments", include_str!("scripts/includes/arguments.lua")),
    ("chunks", include_str!("scripts/includes/chunks.lua")),
    ("claim", include_str!("scripts/includes/claim.lua")),
    ("clock", include_str!("scripts/includes/clock.lua")),
    ("events", include_str!("scripts/includes/events.lua")),
    ("keys", include_str!("scripts/includes/keys.lua")),
    ("lock", include_str!("scripts/includes/lock.lua")),
    ("nodes", include_str!("scripts/includes/nodes.lua")),
    ("pending", include_str!("scripts/includes/pending.lua")),
    ("queues", include_str!("scripts/includes/queues.lua")),
    ("runs", include_str!("scripts/includes/runs.lua")),
    ("settle", include_str!("scripts/includes/settle.lua")),
    ("task", include_str!("scripts/includes/task.lua")),
];

impl Script {
    fn new(source: &str, changes: bool) -> Self {
        let text = expand(source);
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash, changes }
    }
}

/// Puts the text of an include in place of each line `--#include name`.
fn expand(source: &str) -> String {
    let mut text = String::new();
    for line in source.lines() {
        let named = line.strip_prefix("--#include ").map(str::trim);
        match named.and_then(|name| INCLUDES.iter().find(|(known, _)| *known == name)) {
            Some((_, include)) => text.push_str(include.trim_end()),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

macro_rules! scripts {
    ($($does:ident $name:ident = $file:literal;)*) => {
        $(pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(include_str!(concat!("scripts/", $file, ".lua")), stringify!($does) == "writes")
        });)*

        /// Every script with its name.
        pub(crate) fn all() -> Vec<(&'static str, &'static Script)> {
            vec![$(($file, &*$name)),*]
        }
    };
}

scripts! {
    writes ARCHIVE_BIND = "archive_bind";
    writes COMMIT = "commit";
    writes DROP_GRAPHS = "drop_graphs";
    reads DUE = "due";
    writes FORGET = "forget";
    writes HEARTBEAT = "heartbeat";
    reads HELD = "held";
    writes LOCK_RENEW = "lock_renew";
    writes LOCK_RUN = "lock_run";
    writes LOCK_TAKE = "lock_take";
    writes LEAVE = "leave";
    reads LOAD = "load";
    writes LOST = "lost";
    writes PENDING = "pending";
    reads QUEUES = "queues";
    writes PUBLISH = "publish";
    writes QUEUE_READY = "queue_ready";
    writes RESERVE = "reserve";
    writes SHIP_DONE = "ship_done";
    writes SHIP_NEXT = "ship_next";
    writes STEP = "step";
    writes TAKE_SIGNALS = "take_signals";
    writes WORKER_ALIVE = "worker_alive";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Redis really runs, reviewed as a diff.
    #[test]
    fn the_texts_are_those_of_the_snapshots() {
        for (name, script) in all() {
            assert!(!script.text.contains("--#include"), "{name} names an include that is not there");
            insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
                insta::assert_snapshot!(name, script.text);
            });
        }
    }

    /// A list that is unpacked whole fails at about 8,000 words (`too many results to unpack`).
    #[test]
    fn lists_are_unpacked_by_the_chunk_alone() {
        let chunks =
            INCLUDES.iter().find(|(name, _)| *name == "chunks").map_or("", |(_, text)| text.trim_end());
        for (name, script) in all() {
            let rest = script.text.replace(chunks, "").replace("cmsgpack.unpack(", "");
            assert!(!rest.contains("unpack("), "{name} unpacks a list by itself: use includes/chunks.lua");
        }
        // Of what is not a chunk, no more than a constant number of words.
        for unpacked in chunks.lines().filter(|line| line.contains("unpack(")) {
            let bounded = ["+ CHUNK - 1", "unpack(fields))", "first + count - 1"];
            assert!(bounded.iter().any(|bound| unpacked.contains(bound)), "`{unpacked}` has no bound");
        }
    }

    #[test]
    fn every_script_says_what_it_takes_and_gives() {
        for (name, script) in all() {
            for part in ["-- KEYS", "-- ARGV", "-- Returns"] {
                assert!(script.text.contains(part), "{name} does not say {part}");
            }
        }
    }
}
