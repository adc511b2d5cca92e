//! Storing a checkpoint.

use redis::Cmd;

use crate::error::Error;
use crate::keys::{self, Keyspace};
use crate::record::Draft;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;
use crate::typed::Typed;
use crate::wire::Reply;

/// A checkpoint to be stored.
#[derive(Clone, Debug)]
pub struct Put {
    pub thread: String,
    pub ns: String,
    pub id: String,
    pub parent: Option<String>,
    pub run: Option<String>,
    /// Channels whose value is to be found in earlier checkpoints.
    pub delta: Vec<String>,
    /// How long the thread lives from now on, unless it has a TTL of its own; 0 is for ever.
    pub ttl_ms: u64,
    checkpoint: Vec<u8>,
    metadata: Vec<u8>,
    refs: Vec<String>,
    values: Vec<(String, Vec<u8>)>,
    emptied: Vec<String>,
}

impl Put {
    pub fn new(thread: &str, ns: &str, id: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            ns: ns.to_owned(),
            id: id.to_owned(),
            parent: None,
            run: None,
            delta: Vec::new(),
            ttl_ms: 0,
            checkpoint: Vec::new(),
            metadata: Vec::new(),
            refs: Vec::new(),
            values: Vec::new(),
            emptied: Vec::new(),
        }
    }

    /// The checkpoint without its values.
    pub fn checkpoint(&mut self, format: &str, bytes: &[u8]) {
        self.checkpoint = Typed::encode(format, bytes);
    }

    pub fn metadata(&mut self, format: &str, bytes: &[u8]) {
        self.metadata = Typed::encode(format, bytes);
    }

    /// A channel of the checkpoint whose value, if it has one, was stored before. `version` comes from [`crate::keys`].
    pub fn refer(&mut self, channel: &str, version: &str) {
        self.refs.push(keys::blob_ref(channel, version));
    }

    /// A channel with a new value.
    pub fn value(&mut self, channel: &str, version: &str, format: &str, bytes: &[u8]) {
        self.values.push((keys::blob_ref(channel, version), Typed::encode(format, bytes)));
    }

    /// A channel that has no value in its new version.
    pub fn empty(&mut self, channel: &str, version: &str) {
        self.emptied.push(keys::blob_ref(channel, version));
    }

    /// The one call that it is, as the server takes it.
    pub fn request(&self, space: &Keyspace) -> Vec<u8> {
        self.call(space).get_packed_command()
    }

    /// The new checkpoint's place in the order of the thread.
    pub fn answered(&self, reply: Reply) -> Result<u64, Error> {
        let seq = reply::integer(&reply.0).and_then(|seq| u64::try_from(seq).ok());
        seq.ok_or_else(|| Error::corrupt(&self.thread, "the new checkpoint has no place in the order"))
    }

    pub(crate) fn call(&self, space: &Keyspace) -> Cmd {
        let prefix = keys::namespace_prefix(&self.ns);
        let draft = Draft {
            parent: self.parent.as_deref(),
            run: self.run.as_deref(),
            delta: &self.delta,
            refs: &self.refs,
            checkpoint: &self.checkpoint,
            metadata: &self.metadata,
        };
        let mut call = scripts::PUT.call(&space.thread(&self.thread));
        call.arg(self.ttl_ms).arg(&self.thread).arg(&prefix).arg(&*keys::escape(&self.id));
        call.arg(self.run.as_deref().unwrap_or_default()).arg(draft.pack()).arg(self.values.len());
        for (field, value) in &self.values {
            call.arg(format!("{prefix}{field}")).arg(value);
        }
        for field in &self.emptied {
            call.arg(format!("{prefix}{field}"));
        }
        call
    }
}

impl Checkpoints {
    /// Stores a checkpoint and its new values at once; its place in the order of the thread.
    pub async fn put(&self, put: &Put) -> Result<u64, Error> {
        put.answered(Reply(self.send(&put.thread, &put.call(&self.space)).await?))
    }
}
