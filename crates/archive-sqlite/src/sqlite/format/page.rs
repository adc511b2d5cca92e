//! The rows on a page: cells, and the values of the records in them.

use super::{be16, be32};

/// Length of the database header, at the start of the first page.
pub(in crate::sqlite) const FILE_HEADER_BYTES: usize = 100;

const TABLE_LEAF: u8 = 0x0d;
const INDEX_LEAF: u8 = 0x0a;
const INDEX_INNER: u8 = 0x02;

/// The page size of a database, from its file header.
pub(in crate::sqlite) fn page_bytes(file_header: &[u8]) -> Option<usize> {
    match be16(file_header, 16)? {
        1 => Some(65_536),
        size if size >= 512 && size.is_power_of_two() => Some(size.into()),
        _ => None,
    }
}

/// A row as it lies on a page. The part that does not fit is in a chain of overflow pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct Cell<'p> {
    /// `None` in an index, and in a table without row ids, which is stored as an index.
    pub(in crate::sqlite) rowid: Option<i64>,
    pub(in crate::sqlite) record_bytes: usize,
    /// The part of the record that is on this page.
    pub(in crate::sqlite) here: &'p [u8],
    /// The first overflow page.
    pub(in crate::sqlite) rest: Option<u32>,
}

/// The rows on a page. Empty for a page that holds no rows; malformed cells are skipped.
pub(in crate::sqlite) fn cells(page: &[u8], is_first: bool) -> impl Iterator<Item = Cell<'_>> {
    let head = if is_first { FILE_HEADER_BYTES } else { 0 };
    let kind = page.get(head).copied().filter(|kind| matches!(*kind, TABLE_LEAF | INDEX_LEAF | INDEX_INNER));
    let count = kind.and(be16(page, head + 3)).unwrap_or(0);
    let pointers = head + if kind == Some(INDEX_INNER) { 12 } else { 8 };
    (0..usize::from(count)).filter_map(move |n| {
        let at = be16(page, pointers + 2 * n)?;
        cell(page, at.into(), kind?)
    })
}

fn cell(page: &[u8], at: usize, kind: u8) -> Option<Cell<'_>> {
    let mut bytes = page.get(at..)?;
    if kind == INDEX_INNER {
        bytes = bytes.get(4..)?;
    }
    let record_bytes = usize::try_from(varint(&mut bytes)?).ok()?;
    let rowid = if kind == TABLE_LEAF { Some(varint(&mut bytes)?) } else { None };
    let here_bytes = bytes_here(page.len(), record_bytes, kind);
    let here = bytes.get(..here_bytes)?;
    let rest = if here_bytes < record_bytes { Some(be32(bytes, here_bytes)?) } else { None };
    Some(Cell { rowid, record_bytes, here, rest })
}

/// The number of bytes of a record that are on the page of its cell.
fn bytes_here(page_bytes: usize, record_bytes: usize, kind: u8) -> usize {
    let most = if kind == TABLE_LEAF { page_bytes - 35 } else { (page_bytes - 12) * 64 / 255 - 23 };
    if record_bytes <= most {
        return record_bytes;
    }
    let least = (page_bytes - 12) * 32 / 255 - 23;
    let fitting = least + (record_bytes - least) % (page_bytes - 4);
    if fitting <= most { fitting } else { least }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sqlite) enum Value<'r> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'r str),
    Blob(&'r [u8]),
}

impl<'r> Value<'r> {
    pub(in crate::sqlite) fn text(self) -> Option<&'r str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(in crate::sqlite) fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            _ => None,
        }
    }
}

/// The values of a record; `None` if the bytes are not a record, or its text is not UTF-8.
pub(in crate::sqlite) fn values(record: &[u8]) -> Option<Vec<Value<'_>>> {
    let mut after_length = record;
    let header_bytes = usize::try_from(varint(&mut after_length)?).ok()?;
    let length_bytes = record.len() - after_length.len();
    let mut types = record.get(length_bytes..header_bytes)?;
    let mut body = record.get(header_bytes..)?;
    let mut found = Vec::new();
    while !types.is_empty() {
        found.push(value(varint(&mut types)?, &mut body)?);
    }
    Some(found)
}

fn value<'r>(kind: i64, body: &mut &'r [u8]) -> Option<Value<'r>> {
    let mut take = |bytes: usize| {
        let (taken, rest) = body.split_at_checked(bytes)?;
        *body = rest;
        Some(taken)
    };
    Some(match kind {
        0 => Value::Null,
        1..=4 => Value::Integer(integer(take(usize::try_from(kind).ok()?)?)),
        5 => Value::Integer(integer(take(6)?)),
        6 => Value::Integer(integer(take(8)?)),
        7 => Value::Real(f64::from_be_bytes(take(8)?.try_into().ok()?)),
        8 | 9 => Value::Integer(kind - 8),
        12.. if kind % 2 == 0 => Value::Blob(take(usize::try_from((kind - 12) / 2).ok()?)?),
        13.. => Value::Text(std::str::from_utf8(take(usize::try_from((kind - 13) / 2).ok()?)?).ok()?),
        _ => return None,
    })
}

/// A big-endian signed number of up to 8 bytes.
fn integer(bytes: &[u8]) -> i64 {
    let sign = if bytes.first().is_some_and(|first| *first >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte))
}

/// Reads a number of up to 9 bytes: seven bits in each byte, the high bit says that another follows; all eight in the
/// ninth.
fn varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut number: u64 = 0;
    for n in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if n == 8 {
            return Some((number << 8 | u64::from(*byte)).cast_signed());
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(number.cast_signed());
        }
    }
    None
}
