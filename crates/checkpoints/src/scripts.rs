//! The Lua scripts, each with its includes.

use std::sync::LazyLock;

use redis::Cmd;
use switchyard_redis::{Effect, Script};

use crate::encoded_call::EncodedCall;
use crate::keys::{Keyspace, ThreadKeys};

const INCLUDES: &[(&str, &str)] = &[
    ("keep", include_str!("scripts/include/keep.lua")),
    ("load", include_str!("scripts/include/load.lua")),
    ("open", include_str!("scripts/include/open.lua")),
    ("remove", include_str!("scripts/include/remove.lua")),
];

macro_rules! scripts {
    ($($effect:ident $name:ident = $file:literal;)+) => {
        $(pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(include_str!(concat!("scripts/", $file, ".lua")), INCLUDES, Effect::$effect)
        });)+

        static ALL: &[(&str, &LazyLock<Script>)] = &[$(($file, &$name)),+];
    };
}

scripts! {
    Writes PUT = "put";
    Writes PUT_WRITES = "put_writes";
    Writes GET_TUPLE = "get_tuple";
    Reads DELTA_HISTORY = "delta_history";
    Writes PRUNE = "prune";
    Writes DELETE_RUNS = "delete_runs";
    Writes DELETE_IDLE = "delete_idle";
    Writes SET_TTL = "set_ttl";
    Reads DUMP = "dump";
    Writes RESTORE = "restore";
}

/// A script call on a thread; the caller adds the arguments.
pub(crate) fn call(script: &Script, keys: &ThreadKeys) -> Cmd {
    let mut call = Cmd::with_capacity(32, 4096);
    call.arg("EVALSHA").arg(script.hash()).arg(keys.all().len()).arg(keys.all());
    call
}

/// Like `call`, but encoded, with room for this many bytes of arguments.
pub(crate) fn encoded_call(script: &Script, space: &Keyspace, thread: &str, args: usize) -> EncodedCall {
    let mut call = EncodedCall::with_capacity(args + 1024);
    call.text("EVALSHA");
    call.text(script.hash());
    space.thread_words(thread, &mut call);
    call
}

/// The script that a command calls.
pub(crate) fn called_by(cmd: &Cmd) -> Option<&'static Script> {
    let hash = Script::hash_in(cmd)?;
    ALL.iter().map(|(_, script)| &***script).find(|script| script.hash().as_bytes() == hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_found_by_its_hash_and_says_its_contract() {
        let keys = Keyspace::new("n").unwrap().thread("t");
        for (name, script) in ALL {
            let found = called_by(call(script, &keys).arg("x")).unwrap();
            assert_eq!(found.hash(), script.hash(), "{name}");
            let text = script.text();
            assert!(text.starts_with("-- ") && text.contains("-- ARGV"), "{name} has no contract");
            assert!(!text.contains("--#include"), "{name} names an include that is not there");
        }
    }

    /// A list that is unpacked whole fails at about 8,000 words (`too many results to unpack`).
    #[test]
    fn lists_are_unpacked_by_the_chunk_alone() {
        let by_the_chunk = "use(unpack(list, from, math.min(from + CHUNK - 1, last)))";
        for (name, script) in ALL {
            let text = script.text().replace("cmsgpack.unpack(", "").replace(by_the_chunk, "");
            assert!(!text.contains("unpack("), "{name} unpacks a list of any length");
        }
    }
}
