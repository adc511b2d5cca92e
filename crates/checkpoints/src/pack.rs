//! The subset of MessagePack that records and writes consist of. Lua also reads and writes it (`cmsgpack`), and does
//! not distinguish text from bytes; neither does the reader here.

use rmp::Marker;
use rmp::encode::{self, ByteBuf};

#[derive(Clone, Debug, Default)]
pub(crate) struct Packer(ByteBuf);

impl Packer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(ByteBuf::with_capacity(bytes))
    }

    pub(crate) fn array(&mut self, length: usize) {
        let Ok(_) = encode::write_array_len(&mut self.0, u32::try_from(length).unwrap_or(u32::MAX));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.join(&[bytes]);
    }

    /// Adds one text made of several parts.
    pub(crate) fn join(&mut self, parts: &[&[u8]]) {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        // Not as MessagePack's binary, which Redis 7.0 does not read.
        let Ok(_) = encode::write_str_len(&mut self.0, u32::try_from(length).unwrap_or(u32::MAX));
        parts.iter().for_each(|part| self.0.as_mut_vec().extend_from_slice(part));
    }

    /// Appends values that were packed separately.
    pub(crate) fn append(&mut self, packed: &Self) {
        self.0.as_mut_vec().extend_from_slice(packed.0.as_vec());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn integer(&mut self, number: i64) {
        let Ok(_) = encode::write_sint(&mut self.0, number);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_slice().len()
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.into_vec()
    }
}

/// Reads packed values from the front. Each method returns `None` if the next value has another type.
pub(crate) struct Unpacker<'a>(&'a [u8]);

impl<'a> Unpacker<'a> {
    pub(crate) fn new(packed: &'a [u8]) -> Self {
        Self(packed)
    }

    pub(crate) fn array(&mut self) -> Option<usize> {
        Some(rmp::decode::read_array_len(&mut self.0).ok()? as usize)
    }

    pub(crate) fn integer(&mut self) -> Option<i64> {
        rmp::decode::read_int(&mut self.0).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = match rmp::decode::read_marker(&mut self.0).ok()? {
            Marker::FixStr(length) => length as usize,
            Marker::Str8 | Marker::Bin8 => self.length::<1>()?,
            Marker::Str16 | Marker::Bin16 => self.length::<2>()?,
            Marker::Str32 | Marker::Bin32 => self.length::<4>()?,
            _ => return None,
        };
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn length<const N: usize>(&mut self) -> Option<usize> {
        Some(self.take(N)?.iter().fold(0, |length, byte| length << 8 | *byte as usize))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_read() {
        let long = vec![7; 70_000];
        let mut packer = Packer::default();
        packer.array(2);
        packer.integer(-4);
        packer.text("häm");
        packer.bytes(&long);
        let packed = packer.finish();
        let mut unpacker = Unpacker::new(&packed);
        assert_eq!(unpacker.array(), Some(2));
        assert_eq!(unpacker.integer(), Some(-4));
        assert_eq!(unpacker.text(), Some("häm"));
        assert_eq!(unpacker.bytes(), Some(long.as_slice()));
        assert_eq!(unpacker.bytes(), None);
    }
}
