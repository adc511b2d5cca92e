//! Stores a checkpoint.

use crate::encoded_call::EncodedCall;
use crate::error::Error;
use crate::keys::{self, Keyspace};
use crate::raw_connection::Reply;
use crate::record::{Draft, Refs};
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;
use crate::typed::Typed;

/// A checkpoint to store.
#[derive(Clone, Debug)]
pub struct Put {
    pub thread: String,
    pub id: String,
    pub parent: Option<String>,
    pub run: Option<String>,
    /// Channels whose value is rebuilt from earlier checkpoints.
    pub delta: Vec<String>,
    /// The new lifetime of the thread, unless the thread has a TTL of its own; 0 means no expiry.
    pub ttl_ms: u64,
    checkpoint: Vec<u8>,
    metadata: Vec<u8>,
    refs: Refs,
    /// New fields with their values; `emptied` has the fields without a value.
    values: EncodedCall,
    emptied: EncodedCall,
    /// `ns/`
    prefix: String,
}

impl Put {
    pub fn new(thread: &str, ns: &str, id: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            prefix: keys::namespace_prefix(ns),
            id: id.to_owned(),
            parent: None,
            run: None,
            delta: Vec::new(),
            ttl_ms: 0,
            checkpoint: Vec::new(),
            metadata: Vec::new(),
            refs: Refs::default(),
            values: EncodedCall::default(),
            emptied: EncodedCall::default(),
        }
    }

    /// Sets the checkpoint without its values.
    pub fn checkpoint(&mut self, format: &str, bytes: &[u8]) {
        self.checkpoint = Typed::encode(format, bytes);
    }

    pub fn metadata(&mut self, format: &str, bytes: &[u8]) {
        self.metadata = Typed::encode(format, bytes);
    }

    /// Adds a channel of the checkpoint whose value, if any, was stored before. `version` comes from [`crate::keys`].
    pub fn refer(&mut self, channel: &str, version: &str) {
        self.refs.push(channel, version);
    }

    /// Adds a channel with a new value.
    pub fn value(&mut self, channel: &str, version: &str, format: &str, bytes: &[u8]) {
        field(&mut self.values, &self.prefix, channel, version);
        self.values.join(&Typed::parts(&keys::escape(format), bytes));
    }

    /// Adds a channel that has no value in its new version.
    pub fn empty(&mut self, channel: &str, version: &str) {
        field(&mut self.emptied, &self.prefix, channel, version);
    }

    /// Appends the encoded call to a buffer.
    pub fn request(&self, space: &Keyspace, unsent: &mut Vec<u8>) {
        self.call(space).send_with(unsent);
    }

    /// Decodes the answer: the position of the new checkpoint in its thread.
    pub fn answered(&self, reply: Reply) -> Result<u64, Error> {
        let seq = reply::integer(&reply.0).and_then(|seq| u64::try_from(seq).ok());
        seq.ok_or_else(|| Error::corrupt(&self.thread, "the new checkpoint has no place in the order"))
    }

    fn call(&self, space: &Keyspace) -> EncodedCall {
        let draft = Draft {
            parent: self.parent.as_deref(),
            run: self.run.as_deref(),
            delta: &self.delta,
            refs: &self.refs,
            checkpoint: &self.checkpoint,
            metadata: &self.metadata,
        };
        let record = draft.pack();
        let size = record.len() + self.values.size() + self.emptied.size();
        let mut call = scripts::encoded_call(&scripts::PUT, space, &self.thread, size);
        call.number(self.ttl_ms);
        call.text(&self.thread);
        call.text(&self.prefix);
        call.text(&keys::escape(&self.id));
        call.text(self.run.as_deref().unwrap_or_default());
        call.join(&[&record]);
        call.number(self.values.count() as u64 / 2);
        call.extend(&self.values);
        call.extend(&self.emptied);
        call
    }
}

/// Adds the field `ns/channel/version`.
fn field(words: &mut EncodedCall, prefix: &str, channel: &str, version: &str) {
    words.join(&[prefix.as_bytes(), keys::escape(channel).as_bytes(), b"/", version.as_bytes()]);
}

impl Checkpoints {
    /// Stores a checkpoint and its new values atomically; returns its position in the thread.
    pub async fn put(&self, put: &Put) -> Result<u64, Error> {
        put.answered(Reply(self.send(&put.thread, &put.call(&self.space).command()).await?))
    }
}
