//! Writing a decision whole, or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchyard_core::ir::Ir;
use switchyard_store::StoreError;

use crate::scripts;
use crate::store::RedisStore;

/// A command, word by word.
pub(crate) type Words = Vec<String>;

/// More words than this do not fit on the stack of a script.
pub(super) const WORDS_MAX: usize = 4_000;

#[derive(Debug, Default)]
pub(super) struct Commit {
    /// What runs are on from now on. A run in Redis whose graph is not there could be moved only by processes that
    /// happen to remember it.
    pub(super) graphs: Vec<Arc<Ir>>,
    pub(super) keys: BTreeSet<String>,
    pub(super) expected: Vec<[String; 3]>,
    pub(super) commands: Vec<Words>,
}

impl Commit {
    /// A field of a hash must have this value, or none.
    pub(super) fn expect(&mut self, key: String, field: &str, value: &str) {
        self.expected.push([key, field.to_owned(), value.to_owned()]);
    }

    /// A command on one key, with any number of words after that.
    pub(super) fn on(&mut self, command: &str, key: &str, words: impl IntoIterator<Item = String>) {
        self.keys.insert(key.to_owned());
        let mut all = vec![command.to_owned(), key.to_owned()];
        all.extend(words);
        self.commands.push(all);
    }

    /// The same for a command that takes any number of groups of words: as many commands as it needs.
    pub(super) fn on_many(&mut self, command: &str, key: &str, words: &[String]) {
        for words in words.chunks(WORDS_MAX) {
            self.on(command, key, words.iter().cloned());
        }
    }
}

impl RedisStore {
    /// Whether it was written: not if something has changed since it was read, or if Redis lost a graph, which it
    /// then has again.
    pub(super) async fn commit(&self, commit: Commit) -> Result<bool, StoreError> {
        if commit.commands.is_empty() {
            return Ok(true);
        }
        let mut args = vec![self.keys.begin().to_owned(), self.time(), commit.graphs.len().to_string()];
        args.extend(commit.graphs.iter().map(|ir| ir.hash.hex()));
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
                // What was decided is not written, whatever became of this.
                self.graphs.publish(ir, self.time()).await.map_err(StoreError::not_applied)?;
            }
        }
        let written = answer == "written";
        if written {
            self.urgent.notify_one();
        }
        Ok(written)
    }
}
