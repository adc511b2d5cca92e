//! The stored form of a checkpoint: a value of the hash `data`.
//!
//! Seven MessagePack values in sequence. `put.lua` writes the first two, the scripts read the next four, and no
//! script reads the last:
//!
//! 1. `seq`: the position of the checkpoint in its thread
//! 2. `at`: when it was stored, in milliseconds, by the server's clock
//! 3. `parent`: the escaped id of the previous checkpoint, or empty
//! 4. `run`: the run that made it, or empty
//! 5. `delta`: escaped names of channels whose value is spread over earlier checkpoints
//! 6. `refs`: `channel/version` of every value of the checkpoint
//! 7. `body`: an array of two: the checkpoint without its values, and the metadata, each as `format:bytes`

use crate::keys;
use crate::pack::{Packer, Unpacker};
use crate::typed::Typed;

/// The values of a record that the caller provides: 3 to 7.
pub(crate) struct Draft<'a> {
    pub(crate) parent: Option<&'a str>,
    pub(crate) run: Option<&'a str>,
    pub(crate) delta: &'a [String],
    pub(crate) refs: &'a Refs,
    pub(crate) checkpoint: &'a [u8],
    pub(crate) metadata: &'a [u8],
}

/// `channel/version` of values, packed one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refs {
    packed: Packer,
    count: usize,
}

impl Refs {
    /// `version` comes from [`keys`].
    pub(crate) fn push(&mut self, channel: &str, version: &str) {
        self.packed.join(&[keys::escape(channel).as_bytes(), b"/", version.as_bytes()]);
        self.count += 1;
    }
}

impl Draft<'_> {
    pub(crate) fn pack(&self) -> Vec<u8> {
        let bytes = self.refs.packed.len() + self.checkpoint.len() + self.metadata.len();
        let mut packer = Packer::with_capacity(bytes + 192);
        packer.text(&self.parent.map(keys::escape).unwrap_or_default());
        packer.text(self.run.unwrap_or_default());
        packer.array(self.delta.len());
        self.delta.iter().for_each(|channel| packer.text(&keys::escape(channel)));
        packer.array(self.refs.count);
        packer.append(&self.refs.packed);
        packer.array(2);
        packer.bytes(self.checkpoint);
        packer.bytes(self.metadata);
        packer.finish()
    }
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) seq: u64,
    pub(crate) at_ms: i64,
    pub(crate) parent: Option<String>,
    pub(crate) run: Option<String>,
    /// The channels of the values, in the order in which the scripts return them.
    pub(crate) channels: Vec<String>,
    pub(crate) checkpoint: Typed,
    pub(crate) metadata: Typed,
}

impl Record {
    pub(crate) fn unpack(packed: &[u8]) -> Option<Self> {
        let mut unpacker = Unpacker::new(packed);
        let seq = u64::try_from(unpacker.integer()?).ok()?;
        let at_ms = unpacker.integer()?;
        let parent = some_text(keys::unescape, unpacker.text()?)?;
        let run = some_text(|run| Some(run.to_owned()), unpacker.text()?)?;
        for _ in 0..unpacker.array()? {
            unpacker.text()?;
        }
        let channels = (0..unpacker.array()?)
            .map(|_| keys::unescape(unpacker.text()?.split_once('/')?.0))
            .collect::<Option<Vec<String>>>()?;
        if unpacker.array()? != 2 {
            return None;
        }
        let checkpoint = Typed::decode(unpacker.bytes()?.to_vec())?;
        let metadata = Typed::decode(unpacker.bytes()?.to_vec())?;
        Some(Self { seq, at_ms, parent, run, channels, checkpoint, metadata })
    }

    /// Decodes only the seq.
    pub(crate) fn seq(packed: &[u8]) -> Option<u64> {
        u64::try_from(Unpacker::new(packed).integer()?).ok()
    }
}

/// Reads a text; an empty one is `None`.
fn some_text(read: impl Fn(&str) -> Option<String>, text: &str) -> Option<Option<String>> {
    if text.is_empty() { Some(None) } else { Some(Some(read(text)?)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back() {
        let mut refs = Refs::default();
        refs.push("branch:to:a", "0001.5");
        refs.push("x", "#1");
        let draft = Draft {
            parent: Some("p/1"),
            run: None,
            delta: &["messages".to_owned()],
            refs: &refs,
            checkpoint: b"msgpack:c",
            metadata: b"msgpack:m",
        };
        let mut packer = Packer::default();
        packer.integer(7);
        packer.integer(1_700_000_000_000);
        let packed = [packer.finish(), draft.pack()].concat();
        let record = Record::unpack(&packed).unwrap();
        assert_eq!((record.seq, record.at_ms), (7, 1_700_000_000_000));
        assert_eq!((record.parent.as_deref(), record.run), (Some("p/1"), None));
        assert_eq!(record.channels, ["branch:to:a", "x"]);
        assert_eq!(record.checkpoint, Typed::new("msgpack", b"c"));
        assert_eq!(Record::seq(&packed), Some(7));
        for length in 0..packed.len() {
            assert!(Record::unpack(&packed[..length]).is_none(), "cut off after {length}");
        }
    }
}
