//! The stored form of a task's writes: a value of the hash `writes`, an array of arrays of four: index, path of the
//! task, channel, value as `format:bytes`. `put_writes.lua` merges two of them.

use crate::pack::{Packer, Unpacker};
use crate::typed::Typed;

/// A value that a task wrote to a channel before the next checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub task: String,
    pub path: String,
    pub index: i64,
    pub channel: String,
    pub value: Typed,
}

/// The index of a write among the writes of its task. Special channels have a fixed index below 0, and a later write
/// there replaces the previous one; all others are written once.
pub fn index_of(channel: &str, position: usize) -> i64 {
    match channel {
        "__error__" => -1,
        "__scheduled__" => -2,
        "__interrupt__" => -3,
        "__resume__" => -4,
        _ => i64::try_from(position).unwrap_or(i64::MAX),
    }
}

/// Packs a task's writes in order: channel and stored value. The last of several writes to a special channel wins.
pub(crate) fn pack(path: &str, values: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut kept: Vec<(i64, &String, &Vec<u8>)> = Vec::with_capacity(values.len());
    for (position, (channel, value)) in values.iter().enumerate() {
        let index = index_of(channel, position);
        match kept.iter_mut().find(|each| index < 0 && each.0 == index) {
            Some(before) => *before = (index, channel, value),
            None => kept.push((index, channel, value)),
        }
    }
    let bytes: usize = kept.iter().map(|each| each.1.len() + each.2.len() + path.len() + 24).sum();
    let mut packer = Packer::with_capacity(bytes);
    packer.array(kept.len());
    for (index, channel, value) in kept {
        packer.array(4);
        packer.integer(index);
        packer.text(path);
        packer.text(channel);
        packer.bytes(value);
    }
    packer.finish()
}

pub(crate) fn unpack(task: &str, packed: &[u8]) -> Option<Vec<Write>> {
    let mut unpacker = Unpacker::new(packed);
    (0..unpacker.array()?)
        .map(|_| {
            if unpacker.array()? != 4 {
                return None;
            }
            Some(Write {
                task: task.to_owned(),
                index: unpacker.integer()?,
                path: unpacker.text()?.to_owned(),
                channel: unpacker.text()?.to_owned(),
                value: Typed::decode(unpacker.bytes()?.to_vec())?,
            })
        })
        .collect()
}

/// Sorts writes into the order in which the graph applies them: LangGraph's `writes_sort_key`.
pub(crate) fn sort(writes: &mut [Write]) {
    writes.sort_by(|a, b| (&a.path, &a.task, a.index).cmp(&(&b.path, &b.task, b.index)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Vec<u8> {
        Typed::encode("msgpack", text.as_bytes())
    }

    #[test]
    fn a_special_channel_keeps_its_last_write_and_its_place() {
        let written = [
            ("a".to_owned(), value("1")),
            ("__interrupt__".to_owned(), value("2")),
            ("a".to_owned(), value("3")),
            ("__interrupt__".to_owned(), value("4")),
        ];
        let mut writes = unpack("t", &pack("path", &written)).unwrap();
        sort(&mut writes);
        let shown: Vec<_> = writes.iter().map(|each| (each.index, each.value.bytes.as_slice())).collect();
        assert_eq!(shown, [(-3, &b"4"[..]), (0, b"1"), (2, b"3")]);
    }

    #[test]
    fn the_path_orders_before_the_task() {
        let mut writes = [("t1", "b"), ("t2", "a"), ("t0", "a")]
            .iter()
            .flat_map(|(task, path)| unpack(task, &pack(path, &[("c".to_owned(), value("v"))])).unwrap())
            .collect::<Vec<_>>();
        sort(&mut writes);
        assert_eq!(writes.iter().map(|each| each.task.as_str()).collect::<Vec<_>>(), ["t0", "t2", "t1"]);
    }
}
