//! The Lua scripts. They are called by hash and sent again when the server does not know them.

use std::sync::LazyLock;

use redis::Cmd;

use crate::encoded_call::EncodedCall;
use crate::keys::{Keyspace, ThreadKeys};

/// A file of `scripts/`, behind the includes that it uses.
pub(crate) struct Script {
    pub(crate) text: &'static [&'static str],
    source: LazyLock<(String, String)>,
}

const OPEN: &str = include_str!("scripts/include/open.lua");
const KEEP: &str = include_str!("scripts/include/keep.lua");
const LOAD: &str = include_str!("scripts/include/load.lua");
const REMOVE: &str = include_str!("scripts/include/remove.lua");

macro_rules! scripts {
    ($($name:ident = [$($part:expr),+];)+) => {$(
        pub(crate) static $name: Script = Script {
            text: &[$($part),+],
            source: LazyLock::new(|| $name.assemble()),
        };
    )+
        #[cfg(test)]
        static ALL: &[(&str, &Script)] = &[$((stringify!($name), &$name)),+];
    };
}

scripts! {
    PUT = [OPEN, KEEP, include_str!("scripts/put.lua")];
    PUT_WRITES = [OPEN, KEEP, include_str!("scripts/put_writes.lua")];
    GET_TUPLE = [OPEN, KEEP, LOAD, include_str!("scripts/get_tuple.lua")];
    DELTA_HISTORY = [OPEN, LOAD, include_str!("scripts/delta_history.lua")];
    PRUNE = [OPEN, LOAD, REMOVE, include_str!("scripts/prune.lua")];
    DELETE_RUNS = [OPEN, LOAD, REMOVE, include_str!("scripts/delete_runs.lua")];
    DELETE_IDLE = [OPEN, include_str!("scripts/delete_idle.lua")];
    SET_TTL = [OPEN, KEEP, include_str!("scripts/set_ttl.lua")];
    DUMP = [OPEN, include_str!("scripts/dump.lua")];
    RESTORE = [include_str!("scripts/restore.lua")];
}

impl Script {
    fn assemble(&self) -> (String, String) {
        let text = self.text.concat();
        let hash = sha1_smol::Sha1::from(&text).digest().to_string();
        (text, hash)
    }

    /// A call on a thread; arguments are added to it.
    pub(crate) fn call(&self, keys: &ThreadKeys) -> Cmd {
        let mut call = Cmd::with_capacity(32, 4096);
        call.arg("EVALSHA").arg(&self.source.1).arg(keys.all().len()).arg(keys.all());
        call
    }

    /// The same as words, with room for this many bytes of arguments.
    pub(crate) fn words(&self, space: &Keyspace, thread: &str, args: usize) -> EncodedCall {
        let mut words = EncodedCall::with_capacity(args + 1024);
        words.text("EVALSHA");
        words.text(&self.source.1);
        space.thread_words(thread, &mut words);
        words
    }

    /// The same call with the script's text, for a server that does not know its hash.
    pub(crate) fn with_text(call: &Cmd) -> Option<Cmd> {
        let mut args = call.args_iter();
        let is_evalsha = matches!(args.next()?, redis::Arg::Simple(name) if name == b"EVALSHA");
        let redis::Arg::Simple(hash) = args.next()? else { return None };
        let script = EVERY.iter().find(|script| script.source.1.as_bytes() == hash)?;
        let mut whole = Cmd::new();
        whole.arg("EVAL").arg(&script.source.0);
        for arg in args {
            if let redis::Arg::Simple(bytes) = arg {
                whole.arg(bytes);
            }
        }
        is_evalsha.then_some(whole)
    }
}

static EVERY: [&Script; 10] = [
    &PUT,
    &PUT_WRITES,
    &GET_TUPLE,
    &DELTA_HISTORY,
    &PRUNE,
    &DELETE_RUNS,
    &DELETE_IDLE,
    &SET_TTL,
    &DUMP,
    &RESTORE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_found_by_its_hash_and_says_its_contract() {
        assert_eq!(ALL.len(), EVERY.len());
        let keys = crate::keys::Keyspace::new("n").unwrap().thread("t");
        for (name, script) in ALL {
            let whole = Script::with_text(script.call(&keys).arg("x")).unwrap();
            assert!(whole.args_iter().len() > 8, "{name}");
            let own = script.text.last().unwrap();
            assert!(own.starts_with("-- ") && own.contains("-- ARGV"), "{name} has no contract");
        }
    }

    /// A list that is unpacked whole fails at about 8,000 words (`too many results to unpack`).
    #[test]
    fn lists_are_unpacked_by_the_chunk_alone() {
        let by_the_chunk = "use(unpack(list, from, math.min(from + CHUNK - 1, last)))";
        for (name, script) in ALL {
            let text = script.text.concat().replace("cmsgpack.unpack(", "").replace(by_the_chunk, "");
            assert!(!text.contains("unpack("), "{name} unpacks a list of any length");
        }
    }
}
