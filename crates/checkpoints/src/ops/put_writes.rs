//! Stores the writes of a task.

use crate::encoded_call::EncodedCall;
use crate::error::Error;
use crate::keys::{self, Keyspace};
use crate::scripts;
use crate::store::Checkpoints;
use crate::typed::Typed;
use crate::writes;

/// The writes of one task after a checkpoint.
#[derive(Clone, Debug)]
pub struct PutWrites {
    pub thread: String,
    pub ns: String,
    pub checkpoint: String,
    pub task: String,
    pub path: String,
    /// The new lifetime of the thread, as in [`crate::Put`].
    pub ttl_ms: u64,
    values: Vec<(String, Vec<u8>)>,
}

impl PutWrites {
    pub fn new(thread: &str, ns: &str, checkpoint: &str, task: &str, path: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            ns: ns.to_owned(),
            checkpoint: checkpoint.to_owned(),
            task: task.to_owned(),
            path: path.to_owned(),
            ttl_ms: 0,
            values: Vec::new(),
        }
    }

    pub fn write(&mut self, channel: &str, format: &str, bytes: &[u8]) {
        self.values.push((channel.to_owned(), Typed::encode(format, bytes)));
    }

    /// Appends the encoded call to a buffer, like [`crate::Put::request`]. The answer is not decoded.
    pub fn request(&self, space: &Keyspace, unsent: &mut Vec<u8>) {
        self.call(space).send_with(unsent);
    }

    fn call(&self, space: &Keyspace) -> EncodedCall {
        let [ns, checkpoint, task] = [&self.ns, &self.checkpoint, &self.task].map(|part| keys::escape(part));
        let writes = writes::pack(&self.path, &self.values);
        let mut call = scripts::encoded_call(&scripts::PUT_WRITES, space, &self.thread, writes.len());
        call.number(self.ttl_ms);
        call.text(&self.thread);
        call.join(&[ns.as_bytes(), b"/", checkpoint.as_bytes(), b"/", task.as_bytes()]);
        call.join(&[&writes]);
        call
    }
}

impl Checkpoints {
    /// Stores a task's writes atomically. The checkpoint itself may be stored later.
    pub async fn put_writes(&self, put: &PutWrites) -> Result<(), Error> {
        self.send(&put.thread, &put.call(&self.space).command()).await?;
        Ok(())
    }
}
