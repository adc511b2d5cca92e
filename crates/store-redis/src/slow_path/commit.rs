//! Writes a decision as a whole, or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchyard_core::ir::Ir;
use switchyard_store::StoreError;

use crate::keys::Keys;
use crate::record::Fields;
use crate::scripts;
use crate::store::RedisStore;

/// The words of a Redis command.
pub(crate) type Words = Vec<String>;

/// The most words that fit on the stack of a script: `CHUNK` in `includes/chunks.lua`.
pub(super) const WORDS_MAX: usize = 4_000;
/// How long a staged key lasts if it is never committed.
const STAGED_MS: &str = "60000";
/// How many commands are sent together to stage a key.
const STAGED_AT_ONCE: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Commit {
    /// The graphs that the written runs are on. If Redis lacked the graph of a run, only processes that have cached it
    /// could work on the run.
    pub(super) graphs: Vec<Arc<Ir>>,
    pub(super) keys: BTreeSet<String>,
    pub(super) staged: Vec<Staged>,
    pub(super) expected: Vec<[String; 3]>,
    pub(super) commands: Vec<Words>,
    /// Lists of tokens to queue after the commit, by their members of `wf.ready`.
    pub(super) ready: Vec<String>,
}

/// A key that is too large for a script to write without holding up all other clients. The process writes it
/// beforehand, piece by piece, under a name that nothing reads; the commit renames it.
#[derive(Debug)]
pub(super) struct Staged {
    name: String,
    commands: Vec<Words>,
}

impl Staged {
    pub(super) fn new(command: &str, name: String, words: &[String]) -> Self {
        let write = |words: &[String]| {
            let begin = [command.to_owned(), name.clone()];
            begin.into_iter().chain(words.iter().cloned()).collect()
        };
        let mut commands: Vec<Words> = words.chunks(WORDS_MAX).map(write).collect();
        commands.insert(1, ["PEXPIRE", &name, STAGED_MS].map(str::to_owned).into());
        Self { name, commands }
    }
}

impl Commit {
    /// Makes the commit depend on the value of a field of a hash; an empty value means that the field must not exist.
    pub(super) fn expect(&mut self, key: String, field: &str, value: &str) {
        self.expected.push([key, field.to_owned(), value.to_owned()]);
    }

    /// Adds a command on one key, with any number of words after the key.
    pub(super) fn on(&mut self, command: &str, key: &str, words: impl IntoIterator<Item = String>) {
        self.keys.insert(key.to_owned());
        let mut all = vec![command.to_owned(), key.to_owned()];
        all.extend(words);
        self.commands.push(all);
    }

    /// Like [`Self::on`], split into several commands if there are too many words for one.
    pub(super) fn on_many(&mut self, command: &str, key: &str, words: &[String]) {
        for words in words.chunks(WORDS_MAX) {
            self.on(command, key, words.iter().cloned());
        }
    }

    /// Adds the commands that replace a hash.
    pub(super) fn replace(&mut self, keys: &Keys, key: &str, fields: &Fields) {
        self.on("UNLINK", key, []);
        let words: Vec<String> = fields.iter().flat_map(|(field, value)| [field, value]).cloned().collect();
        if words.len() <= WORDS_MAX {
            return self.on_many("HSET", key, &words);
        }
        let name = keys.staged(key, rand::random());
        self.staged.push(Staged::new("HSET", name.clone(), &words));
        self.on("RENAME", &name, [key.to_owned()]);
        self.on("PERSIST", key, []);
    }
}

impl RedisStore {
    /// Writes a commit. False if an expected value has changed, or if Redis lacked a graph, which this then publishes
    /// again.
    pub(super) async fn commit(&self, commit: Commit) -> Result<bool, StoreError> {
        if commit.commands.is_empty() {
            return Ok(true);
        }
        for staged in &commit.staged {
            self.stage(staged).await?;
        }
        let mut args = vec![self.keys.begin().to_owned(), self.time(), commit.graphs.len().to_string()];
        args.extend(commit.graphs.iter().map(|ir| ir.hash.hex()));
        args.push(commit.staged.len().to_string());
        args.extend(commit.staged.into_iter().map(|staged| staged.name));
        args.push(commit.expected.len().to_string());
        args.extend(commit.expected.into_iter().flatten());
        args.push(commit.commands.len().to_string());
        for words in commit.commands {
            args.push(words.len().to_string());
            args.extend(words);
        }
        let keys: Vec<String> = commit.keys.into_iter().collect();
        let answer: String = self.client.run(&scripts::COMMIT, &keys, &args).await?;
        if answer == "graph" {
            for ir in &commit.graphs {
                // Whether or not the graph was written, the decision was not.
                self.graphs.publish(ir, self.time()).await.map_err(StoreError::not_applied)?;
            }
        }
        let written = answer == "written";
        if written {
            self.shipper.hurry();
            self.queue_all(&commit.ready).await;
        }
        Ok(written)
    }

    async fn stage(&self, staged: &Staged) -> Result<(), StoreError> {
        for commands in staged.commands.chunks(STAGED_AT_ONCE) {
            let mut pipe = redis::pipe();
            for words in commands {
                pipe.cmd(&words[0]).arg(&words[1..]).ignore();
            }
            // Nothing reads a staged key before the commit: nothing has changed so far.
            self.client.query_all::<()>(&pipe).await.map_err(StoreError::not_applied)?;
        }
        Ok(())
    }
}
