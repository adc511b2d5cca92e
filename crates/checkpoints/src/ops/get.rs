//! Reads a checkpoint.

use redis::Value;

use crate::encoded_call::EncodedCall;
use crate::error::Error;
use crate::keys::{self, Keyspace};
use crate::raw_connection::Reply;
use crate::record::Record;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;
use crate::typed::Typed;
use crate::writes::{self, Write};

/// A stored checkpoint.
#[derive(Clone, Debug)]
pub struct Stored {
    pub thread: String,
    pub ns: String,
    pub id: String,
    pub parent: Option<String>,
    pub run: Option<String>,
    /// The position of the checkpoint in its thread.
    pub seq: u64,
    /// When it was stored, by the server's clock.
    pub at_ms: i64,
    /// The checkpoint without its values.
    pub checkpoint: Typed,
    pub metadata: Typed,
    pub values: Vec<(String, Typed)>,
    /// The pending writes, in the order in which the graph applies them.
    pub writes: Vec<Write>,
}

/// A request to read a checkpoint.
#[derive(Clone, Debug)]
pub struct Get {
    pub thread: String,
    pub ns: String,
    /// The checkpoint to read; the newest of the namespace if `None`.
    pub id: Option<String>,
    /// Resets the thread's remaining lifetime to this, unless the thread has a TTL of its own.
    pub refresh_ms: Option<u64>,
}

impl Get {
    /// Appends the encoded call to a buffer, like [`crate::Put::request`].
    pub fn request(&self, space: &Keyspace, unsent: &mut Vec<u8>) {
        self.call(space).send_with(unsent);
    }

    pub fn answered(&self, reply: Reply) -> Result<Option<Stored>, Error> {
        if reply.0 == Value::Nil {
            return Ok(None);
        }
        let stored = unpack(&self.thread, &self.ns, reply.0);
        stored.map(Some).ok_or_else(|| Error::corrupt(&self.thread, "a checkpoint cannot be read"))
    }

    pub(super) fn call(&self, space: &Keyspace) -> EncodedCall {
        let mut call = scripts::encoded_call(&scripts::GET_TUPLE, space, &self.thread, 0);
        match self.refresh_ms {
            Some(ttl_ms) => call.number(ttl_ms),
            None => call.text("-1"),
        }
        call.text(&keys::namespace_prefix(&self.ns));
        call.text(&self.id.as_deref().map(keys::escape).unwrap_or_default());
        call
    }
}

impl Checkpoints {
    pub async fn get(&self, get: &Get) -> Result<Option<Stored>, Error> {
        get.answered(Reply(self.send(&get.thread, &get.call(&self.space).command()).await?))
    }
}

fn unpack(thread: &str, ns: &str, answer: Value) -> Option<Stored> {
    let [id, record, values, tasks] = reply::list(answer)?.try_into().ok()?;
    let id = keys::unescape(&reply::text(id)?)?;
    let mut stored = from_record(thread, ns, &id, &reply::bytes(record)?)?;
    let channels = std::mem::take(&mut stored.1);
    let mut stored = stored.0;
    for (channel, value) in channels.into_iter().zip(reply::list(values)?) {
        if value != Value::Nil {
            stored.values.push((channel, Typed::decode(reply::bytes(value)?)?));
        }
    }
    stored.writes = task_writes(reply::list(tasks)?)?;
    Some(stored)
}

/// Decodes a checkpoint without its values and writes, and the channels that it refers to.
pub(super) fn from_record(thread: &str, ns: &str, id: &str, record: &[u8]) -> Option<(Stored, Vec<String>)> {
    let record = Record::unpack(record)?;
    let stored = Stored {
        thread: thread.to_owned(),
        ns: ns.to_owned(),
        id: id.to_owned(),
        parent: record.parent,
        run: record.run,
        seq: record.seq,
        at_ms: record.at_ms,
        checkpoint: record.checkpoint,
        metadata: record.metadata,
        values: Vec::new(),
        writes: Vec::new(),
    };
    Some((stored, record.channels))
}

/// Decodes fields and values of the hash `writes`, in the order in which the graph applies them.
pub(super) fn task_writes(pairs: Vec<Value>) -> Option<Vec<Write>> {
    let mut found = Vec::with_capacity(pairs.len());
    let mut pairs = pairs.into_iter();
    while let (Some(field), Some(value)) = (pairs.next(), pairs.next()) {
        let field = reply::text(field)?;
        let task = keys::unescape(field.rsplit('/').next()?)?;
        found.extend(writes::unpack(&task, &reply::bytes(value)?)?);
    }
    writes::sort(&mut found);
    Some(found)
}
