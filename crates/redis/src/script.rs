//! Scripts: assembled from a file and its includes, called by hash, and loaded into a server that does not know them.

use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, RedisError, Value};

use crate::failure::is_unknown_script;

/// Whether a script writes. If the answer of a read-only script is lost, its outcome is still known: no change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    Writes,
}

/// A script with its includes inserted. Called by the hash of its text, so that two releases can share one server.
#[derive(Debug)]
pub struct Script {
    text: String,
    hash: String,
    effect: Effect,
}

/// The step at which a call failed.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The server did not know the script, and loading it failed: the call changed nothing.
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
    /// Assembles a script: replaces each line `--#include name` by the text of that include.
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

    /// The command that loads the script into a server; in a cluster, into every master.
    pub fn load_command(&self) -> Cmd {
        redis::cmd("SCRIPT").arg("LOAD").arg(&self.text).to_owned()
    }

    /// Sends a call of the script. If the server does not know the script, loads it and sends the call again.
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
