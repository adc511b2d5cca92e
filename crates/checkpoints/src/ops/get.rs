//! Reading a checkpoint.

use redis::{Cmd, Value};

use crate::error::Error;
use crate::keys::{self, Keyspace};
use crate::record::Record;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;
use crate::typed::Typed;
use crate::writes::{self, Write};

/// A checkpoint as it was stored.
#[derive(Clone, Debug)]
pub struct Stored {
    pub thread: String,
    pub ns: String,
    pub id: String,
    pub parent: Option<String>,
    pub run: Option<String>,
    /// Its place in the order of the thread.
    pub seq: u64,
    /// When it was stored, by the server's clock.
    pub at_ms: i64,
    /// Without its values.
    pub checkpoint: Typed,
    pub metadata: Typed,
    pub values: Vec<(String, Typed)>,
    /// Pending, in the order in which the graph applies them.
    pub writes: Vec<Write>,
}

impl Checkpoints {
    /// A checkpoint, or the newest of its namespace. `refresh_ms` gives the thread that long to live from now on, unless
    /// it has a TTL of its own.
    pub async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<&str>,
        refresh_ms: Option<u64>,
    ) -> Result<Option<Stored>, Error> {
        let answer = self.send(thread, &call(&self.space, thread, ns, id, refresh_ms)).await?;
        read(thread, ns, answer)
    }
}

pub(super) fn call(
    space: &Keyspace,
    thread: &str,
    ns: &str,
    id: Option<&str>,
    refresh_ms: Option<u64>,
) -> Cmd {
    let mut call = scripts::GET_TUPLE.call(&space.thread(thread));
    match refresh_ms {
        Some(ttl_ms) => call.arg(ttl_ms),
        None => call.arg(-1),
    };
    call.arg(keys::namespace_prefix(ns));
    call.arg(id.map(|id| keys::escape(id).into_owned()).unwrap_or_default());
    call
}

pub(super) fn read(thread: &str, ns: &str, answer: Value) -> Result<Option<Stored>, Error> {
    if answer == Value::Nil {
        return Ok(None);
    }
    let stored = unpack(thread, ns, answer);
    stored.map(Some).ok_or_else(|| Error::corrupt(thread, "a checkpoint cannot be read"))
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

/// A checkpoint without its values and writes, and the channels that it refers to.
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

/// Fields and values of the hash `writes`, in the order in which the graph applies them.
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
