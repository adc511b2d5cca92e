//! Lists the checkpoints of a thread, newest first, one page at a time.

use redis::Cmd;

use crate::error::Error;
use crate::keys;
use crate::ops::get::{self, Get, Stored};
use crate::raw_connection::Reply;
use crate::record::Record;
use crate::reply;
use crate::store::Checkpoints;

/// Selects checkpoints of a thread.
#[derive(Clone, Debug, Default)]
pub struct Seek {
    pub thread: String,
    /// Only checkpoints of this namespace; of all if `None`.
    pub ns: Option<String>,
    /// Only the checkpoint with this id.
    pub id: Option<String>,
    /// Only checkpoints stored before this one. If it no longer exists, those with smaller ids.
    pub before: Option<String>,
    /// The seq at which the previous page ended.
    pub after_seq: Option<u64>,
    pub count: usize,
    /// Leaves out values and writes, to read the metadata first.
    pub heads_only: bool,
}

#[derive(Debug)]
pub struct Page {
    pub items: Vec<Stored>,
    /// The `after_seq` of the next page.
    pub next: Option<u64>,
}

/// An entry of a thread's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub ns: String,
    pub seq: u64,
    pub id: String,
}

impl Checkpoints {
    pub async fn page(&self, seek: &Seek) -> Result<Page, Error> {
        let count = seek.count.max(1);
        let mut listed = self.listed(seek, count + 1).await?;
        let is_more = listed.len() > count;
        listed.truncate(count);
        let next = listed.last().filter(|_| is_more).map(|last| last.seq);
        let items = match seek.heads_only {
            true => self.heads(&seek.thread, listed).await?,
            false => self.load(&seek.thread, listed).await?,
        };
        Ok(Page { items, next })
    }

    /// Up to `count` entries of the index. A single namespace is a range of the index; for all namespaces the whole
    /// index is read.
    async fn listed(&self, seek: &Seek, count: usize) -> Result<Vec<Listed>, Error> {
        let bound = match &seek.before {
            Some(before) => self.before(seek, before).await?,
            None => Bound::None,
        };
        let below = match (bound, seek.after_seq) {
            (Bound::Seq(seq), Some(after)) => Some(seq.min(after)),
            (Bound::Seq(seq), None) => Some(seq),
            (_, after) => after,
        };
        let is_range = seek.ns.is_some() && seek.id.is_none() && bound != Bound::Id;
        let keys = self.space.thread(&seek.thread);
        let mut cmd = Cmd::new();
        cmd.arg("ZREVRANGEBYLEX").arg(keys.index());
        match &seek.ns {
            Some(ns) => {
                let prefix = keys::namespace_prefix(ns);
                let top = below.map_or_else(|| format!("({prefix}:"), |seq| format!("({prefix}{seq:016}"));
                cmd.arg(top).arg(format!("[{prefix}"));
            }
            None => {
                cmd.arg("+").arg("-");
            }
        }
        if is_range {
            cmd.arg("LIMIT").arg(0).arg(count);
        }
        let members = reply::texts(self.send(&seek.thread, &cmd).await?);
        let listed = members.and_then(|members| members.iter().map(|member| entry(member)).collect());
        let mut listed: Vec<Listed> =
            listed.ok_or_else(|| Error::corrupt(&seek.thread, "the index cannot be read"))?;
        listed.retain(|each| {
            seek.id.as_ref().is_none_or(|id| each.id == *id)
                && below.is_none_or(|seq| each.seq < seq)
                && (bound != Bound::Id || seek.before.as_ref().is_none_or(|before| each.id < *before))
        });
        listed.sort_by_key(|each| std::cmp::Reverse(each.seq));
        listed.truncate(count);
        Ok(listed)
    }

    async fn before(&self, seek: &Seek, before: &str) -> Result<Bound, Error> {
        let keys = self.space.thread(&seek.thread);
        if let Some(ns) = &seek.ns {
            let field = format!("{}{}", keys::namespace_prefix(ns), keys::escape(before));
            let mut cmd = Cmd::new();
            cmd.arg("HGET").arg(keys.data()).arg(field);
            let found = reply::bytes(self.send(&seek.thread, &cmd).await?);
            return Ok(found.and_then(|record| Record::seq(&record)).map_or(Bound::Id, Bound::Seq));
        }
        let mut cmd = Cmd::new();
        cmd.arg("ZRANGE").arg(keys.index()).arg(0).arg(-1);
        let members = reply::texts(self.send(&seek.thread, &cmd).await?).unwrap_or_default();
        let mut places = members.iter().filter_map(|member| entry(member));
        Ok(places.find(|each| each.id == before).map_or(Bound::Id, |each| Bound::Seq(each.seq)))
    }

    async fn heads(&self, thread: &str, listed: Vec<Listed>) -> Result<Vec<Stored>, Error> {
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        let mut cmd = Cmd::new();
        cmd.arg("HMGET").arg(self.space.thread(thread).data());
        for each in &listed {
            cmd.arg(format!("{}{}", keys::namespace_prefix(&each.ns), keys::escape(&each.id)));
        }
        let records = reply::list(self.send(thread, &cmd).await?).unwrap_or_default();
        let mut heads = Vec::with_capacity(listed.len());
        for (each, record) in listed.iter().zip(records) {
            // Checkpoints that were deleted meanwhile are left out.
            let Some(record) = reply::bytes(record) else { continue };
            let head = get::from_record(thread, &each.ns, &each.id, &record);
            heads.push(head.ok_or_else(|| Error::corrupt(thread, "a checkpoint cannot be read"))?.0);
        }
        Ok(heads)
    }

    async fn load(&self, thread: &str, listed: Vec<Listed>) -> Result<Vec<Stored>, Error> {
        let (thread, refresh_ms) = (thread.to_owned(), None);
        let gets: Vec<Get> = listed
            .into_iter()
            .map(|each| Get { thread: thread.clone(), ns: each.ns, id: Some(each.id), refresh_ms })
            .collect();
        let calls: Vec<Cmd> = gets.iter().map(|get| get.call(&self.space).command()).collect();
        let answers = if calls.is_empty() { Vec::new() } else { self.send_all(&thread, &calls).await? };
        let mut loaded = Vec::with_capacity(gets.len());
        for (get, answer) in gets.iter().zip(answers) {
            loaded.extend(get.answered(Reply(answer))?);
        }
        Ok(loaded)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Bound {
    None,
    Seq(u64),
    /// The checkpoint of `before` is gone, so ids are compared.
    Id,
}

fn entry(member: &str) -> Option<Listed> {
    let (ns, seq, id) = keys::split_member(member)?;
    Some(Listed { ns, seq, id })
}
