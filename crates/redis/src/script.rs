//! Scripts: assembled from a file and its includes, called by hash, sent again to a server that does not know them.

use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, RedisError, Value};

use crate::failure::is_unknown_script;

/// Whether a script writes. The answer to one that only reads can be lost without leaving anything unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    Writes,
}

/// A script with its includes put in. The hash of its text names it, so that two releases can share one server.
#[derive(Debug)]
pub struct Script {
    text: String,
    hash: String,
    effect: Effect,
}

/// The step at which a call failed.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The text could not be loaded: the call was refused before that, and changed nothing.
    Load(RedisError),
    Call(RedisError),
}

impl From<CallError> for RedisError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Load(error) | CallError::Call(error) => error,
        }
    }
}

impl Script {
    /// Puts the text of an include in place of each line `--#include name`.
    pub fn new(source: &str, includes: &[(&str, &str)], effect: Effect) -> Self {
        let mut text = String::new();
        for line in source.lines() {
            let name = line.strip_prefix("--#include ").map(str::trim);
            match name.and_then(|name| includes.iter().find(|(known, _)| *known == name)) {
                Some((_, include)) => text.push_str(include.trim_end()),
                None => text.push_str(line),
            }
            text.push('\n');
        }
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash, effect }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub fn writes(&self) -> bool {
        self.effect == Effect::Writes
    }

    /// The hash of the script that a command calls.
    pub fn hash_in(call: &Cmd) -> Option<&[u8]> {
        let mut words = call.args_iter();
        match (words.next()?, words.next()?) {
            (Arg::Simple(b"EVALSHA"), Arg::Simple(hash)) => Some(hash),
            _ => None,
        }
    }

    /// The command that makes a server know it; in a cluster, every master.
    pub fn load_command(&self) -> Cmd {
        redis::cmd("SCRIPT").arg("LOAD").arg(&self.text).to_owned()
    }

    /// Sends a call of it. A server that does not know it is sent its text, and then called again.
    pub async fn send(
        &self,
        call: &Cmd,
        connection: &mut (impl ConnectionLike + Send),
    ) -> Result<Value, CallError> {
        loop {
            match connection.req_packed_command(call).await.and_then(Value::extract_error) {
                Err(error) if is_unknown_script(&error) => {
                    self.load_command().query_async::<()>(connection).await.map_err(CallError::Load)?;
                }
                answer => return answer.map_err(CallError::Call),
            }
        }
    }
}
