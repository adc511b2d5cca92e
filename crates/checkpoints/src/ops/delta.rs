//! Reads the writes since a channel's last stored value, to rebuild channels whose checkpoints hold only changes.

use std::collections::HashSet;

use redis::Value;

use crate::error::Error;
use crate::keys;
use crate::ops::get;
use crate::reply;
use crate::scripts;
use crate::store::Checkpoints;
use crate::typed::Typed;
use crate::writes::Write;

/// Number of ancestors that one call reads, so that a long history does not block the server.
const ANCESTORS_MAX: usize = 200;

#[derive(Clone, Debug, Default)]
pub struct DeltaHistory {
    /// The writes, oldest first.
    pub writes: Vec<Write>,
    /// The stored value before the writes, if there is one.
    pub seed: Option<Typed>,
}

struct Ancestor {
    id: String,
    writes: Vec<Write>,
    /// Channels, by number, whose value this ancestor stores.
    ends: Vec<(usize, Typed)>,
}

impl Checkpoints {
    /// The history of each channel, in the order of the channels. The checkpoint's own writes are not included: they
    /// belong to the next.
    pub async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: Option<&str>,
        channels: &[String],
    ) -> Result<Vec<DeltaHistory>, Error> {
        let mut histories = vec![DeltaHistory::default(); channels.len()];
        let mut open: HashSet<usize> = (0..channels.len()).collect();
        let mut seen = HashSet::new();
        let mut from = id.map(|id| keys::escape(id).into_owned()).unwrap_or_default();
        let mut is_ancestor = false;
        // Newest first, as the script walks the ancestors.
        while !open.is_empty() {
            let looked_for: Vec<usize> = open.iter().copied().collect();
            let mut call = scripts::call(&scripts::DELTA_HISTORY, &self.space.thread(thread));
            call.arg(keys::namespace_prefix(ns)).arg(&from).arg(u8::from(is_ancestor)).arg(ANCESTORS_MAX);
            looked_for.iter().for_each(|number| {
                call.arg(&*keys::escape(&channels[*number]));
            });
            let answer = self.send(thread, &call).await?;
            let (next, ancestors) =
                read(answer).ok_or_else(|| Error::corrupt(thread, "its history cannot be read"))?;
            for ancestor in ancestors {
                // A checkpoint that was stored again under its own descendant makes the chain a loop.
                if !seen.insert(ancestor.id) {
                    return Ok(finish(histories));
                }
                for write in ancestor.writes.into_iter().rev() {
                    let number = open.iter().find(|number| channels[**number] == write.channel);
                    if let Some(number) = number {
                        histories[*number].writes.push(write);
                    }
                }
                for (place, seed) in ancestor.ends {
                    let number = looked_for[place];
                    histories[number].seed = Some(seed);
                    open.remove(&number);
                }
            }
            if next.is_empty() {
                break;
            }
            (from, is_ancestor) = (next, true);
        }
        Ok(finish(histories))
    }
}

fn finish(mut histories: Vec<DeltaHistory>) -> Vec<DeltaHistory> {
    histories.iter_mut().for_each(|history| history.writes.reverse());
    histories
}

fn read(answer: Value) -> Option<(String, Vec<Ancestor>)> {
    let mut parts = reply::list(answer)?.into_iter();
    let next = reply::text(parts.next()?)?;
    let ancestors = parts.map(ancestor).collect::<Option<_>>()?;
    Some((next, ancestors))
}

fn ancestor(part: Value) -> Option<Ancestor> {
    let [id, writes, ends] = reply::list(part)?.try_into().ok()?;
    let mut found = Vec::new();
    let mut ends = reply::list(ends)?.into_iter();
    while let (Some(number), Some(value)) = (ends.next(), ends.next()) {
        let number = usize::try_from(reply::integer(&number)?).ok()?;
        found.push((number, Typed::decode(reply::bytes(value)?)?));
    }
    Some(Ancestor { id: reply::text(id)?, writes: get::task_writes(reply::list(writes)?)?, ends: found })
}
