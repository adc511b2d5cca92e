//! The scripts of the hot store: one command a file, helpers in `includes/`.

use std::sync::LazyLock;

use switchyard_redis::{CLOCK_INCLUDE, Effect, LOCK_INCLUDE, LOCK_RENEW, LOCK_TAKE, Script};

const INCLUDES: &[(&str, &str)] = &[
    ("arguments", include_str!("scripts/includes/arguments.lua")),
    ("chunks", include_str!("scripts/includes/chunks.lua")),
    ("claim", include_str!("scripts/includes/claim.lua")),
    ("clock", CLOCK_INCLUDE),
    ("events", include_str!("scripts/includes/events.lua")),
    ("keys", include_str!("scripts/includes/keys.lua")),
    ("lock", LOCK_INCLUDE),
    ("nodes", include_str!("scripts/includes/nodes.lua")),
    ("pending", include_str!("scripts/includes/pending.lua")),
    ("queues", include_str!("scripts/includes/queues.lua")),
    ("runs", include_str!("scripts/includes/runs.lua")),
    ("settle", include_str!("scripts/includes/settle.lua")),
    ("task", include_str!("scripts/includes/task.lua")),
];

macro_rules! scripts {
    ($($effect:ident $name:ident = $file:literal;)*) => {
        $(pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(include_str!(concat!("scripts/", $file, ".lua")), INCLUDES, Effect::$effect)
        });)*

        /// Every script of the hot store and of the lock, with its name.
        pub(crate) fn all() -> Vec<(&'static str, &'static Script)> {
            vec![("lock_renew", &*LOCK_RENEW), ("lock_take", &*LOCK_TAKE), $(($file, &*$name)),*]
        }
    };
}

scripts! {
    Writes ARCHIVE_BIND = "archive_bind";
    Writes COMMIT = "commit";
    Writes DROP_GRAPHS = "drop_graphs";
    Reads DUE = "due";
    Writes FORGET = "forget";
    Writes HEARTBEAT = "heartbeat";
    Reads HELD = "held";
    Writes LOCK_RUN = "lock_run";
    Writes LEAVE = "leave";
    Reads LOAD = "load";
    Writes LOST = "lost";
    Writes PENDING = "pending";
    Reads QUEUES = "queues";
    Writes PUBLISH = "publish";
    Writes QUEUE_READY = "queue_ready";
    Writes RESERVE = "reserve";
    Writes SHIP_DONE = "ship_done";
    Writes SHIP_NEXT = "ship_next";
    Writes STEP = "step";
    Writes TAKE_SIGNALS = "take_signals";
    Writes WORKER_ALIVE = "worker_alive";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Snapshots show changes to the texts that Redis runs as a diff.
    #[test]
    fn the_texts_are_those_of_the_snapshots() {
        for (name, script) in all() {
            assert!(!script.text().contains("--#include"), "{name} names an include that is not there");
            insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
                insta::assert_snapshot!(name, script.text());
            });
        }
    }

    /// A list that is unpacked whole fails at about 8,000 words (`too many results to unpack`).
    #[test]
    fn lists_are_unpacked_by_the_chunk_alone() {
        let chunks =
            INCLUDES.iter().find(|(name, _)| *name == "chunks").map_or("", |(_, text)| text.trim_end());
        for (name, script) in all() {
            let rest = script.text().replace(chunks, "").replace("cmsgpack.unpack(", "");
            assert!(!rest.contains("unpack("), "{name} unpacks a list by itself: use includes/chunks.lua");
        }
        // Any other list that is unpacked has a constant length.
        for unpacked in chunks.lines().filter(|line| line.contains("unpack(")) {
            let bounded = ["+ CHUNK - 1", "unpack(fields))", "first + count - 1"];
            assert!(bounded.iter().any(|bound| unpacked.contains(bound)), "`{unpacked}` has no bound");
        }
    }

    #[test]
    fn every_script_says_what_it_takes_and_gives() {
        for (name, script) in all() {
            for part in ["-- KEYS", "-- ARGV", "-- Returns"] {
                assert!(script.text().contains(part), "{name} does not say {part}");
            }
        }
    }
}
