//! Tests with a log that SQLite wrote: twelve frames with pages of 512 bytes, in transactions that end with frames 2,
//! 3, 7, 8 and 12.

use super::index::LogIndex;
use super::log::{Fault, Log};
use super::page::{Value, cells, values};

const LOG: &[u8] = include_bytes!("golden/log.wal");
const INDEX: &[u8] = include_bytes!("golden/log.shm");
const HEADER: usize = 32;
const FRAME: usize = 24 + 512;

fn read(bytes: &[u8]) -> Log {
    Log::read(bytes, 512).unwrap()
}

/// The offset of a frame. Frames count from 1.
fn start(frame: usize) -> usize {
    HEADER + (frame - 1) * FRAME
}

/// The log with its bytes changed.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Log {
    let mut bytes = LOG.to_vec();
    change(&mut bytes);
    read(&bytes)
}

#[test]
fn a_whole_log_is_readable_to_its_end() {
    let log = read(LOG);
    assert_eq!((log.readable(), log.committed(), log.fault()), (12, 12, None));
    let commits: Vec<usize> = (1..).zip(&log.frames).filter(|(_, f)| f.commits).map(|(n, _)| n).collect();
    assert_eq!(commits, [2, 3, 7, 8, 12]);
}

#[test]
fn a_log_that_is_torn_at_its_end_is_not_damaged() {
    for cut in start(9)..LOG.len() {
        let log = changed(|bytes| bytes.truncate(cut));
        assert_eq!((log.readable(), log.fault()), (8, None), "cut at {cut}");
    }
    // The disk wrote later pages of the last transaction, but not the first.
    for frame in 9..=12 {
        let log = changed(|bytes| bytes[start(frame)..start(frame) + FRAME].fill(0));
        assert_eq!((log.readable(), log.fault()), (8, None), "frame {frame}");
    }
}

#[test]
fn what_a_rolled_back_transaction_left_behind_is_not_damage() {
    // The commit of the last transaction is over frames of another one, longer, that never had a commit.
    let log = changed(|bytes| {
        let last = bytes[start(9)..].to_vec();
        for (n, frame) in last.chunks(FRAME).enumerate() {
            let mut frame = frame.to_vec();
            frame[4..8].fill(0);
            frame[16] ^= n as u8 + 1;
            bytes.extend(frame);
        }
    });
    assert_eq!((log.frames.len(), log.readable(), log.committed(), log.fault()), (16, 12, 12, None));
}

#[test]
fn frames_of_an_earlier_generation_do_not_count() {
    // The log was restarted, and so far has three frames.
    let log = changed(|bytes| {
        for frame in 4..=12 {
            bytes[start(frame) + 8] ^= 0xff;
        }
    });
    assert_eq!((log.readable(), log.committed(), log.fault()), (3, 3, None));
}

#[test]
fn one_wrong_byte_before_the_last_transactions_is_damage() {
    for at in start(1)..start(8) {
        let frame = (at - HEADER) / FRAME + 1;
        let log = changed(|bytes| bytes[at] ^= 0x10);
        assert_eq!(log.fault(), Some(Fault::Middle { frame, of: 12 }), "byte {at}");
        assert!(log.readable() < frame && log.committed() == 12);
    }
}

#[test]
fn zeroed_frames_with_transactions_behind_them_are_damage() {
    for (from, to) in [(1, 4), (2, 6), (3, 7), (5, 8)] {
        let log = changed(|bytes| bytes[start(from)..start(to)].fill(0));
        assert_eq!(log.fault(), Some(Fault::Middle { frame: from, of: 12 }), "{from} to {to}");
    }
}

#[test]
fn a_wrong_header_before_frames_is_damage() {
    // Byte 12 to 15 count checkpoints; the checksum covers them as well.
    for at in 0..HEADER {
        let log = changed(|bytes| bytes[at] ^= 0x01);
        assert_eq!((log.readable(), log.fault()), (0, Some(Fault::Header)), "byte {at}");
    }
    let log = changed(|bytes| bytes[..HEADER].fill(0));
    assert_eq!(log.fault(), Some(Fault::Header));
}

#[test]
fn no_log_and_an_empty_one_are_sound() {
    for bytes in [&[][..], &LOG[..20], &LOG[..HEADER], &[0; 5_000]] {
        let log = read(bytes);
        assert_eq!((log.readable(), log.committed(), log.fault()), (0, 0, None), "{} bytes", bytes.len());
    }
}

#[test]
fn the_index_knows_how_long_the_log_was() {
    let index = LogIndex::read(INDEX).unwrap();
    assert_eq!(index, LogIndex { frames: 12, copied: 0, salts: read(LOG).salts });
    for at in 0..96 {
        let mut bytes = INDEX.to_vec();
        bytes[at] ^= 0x04;
        assert_eq!(LogIndex::read(&bytes), None, "byte {at}");
    }
    assert_eq!(LogIndex::read(&INDEX[..90]), None);
}

#[test]
fn the_rows_of_a_page_are_read() {
    let leaf = &LOG[start(12) + 24..];
    let rows: Vec<_> = cells(leaf, false).map(|cell| (cell.rowid, values(cell.here).unwrap())).collect();
    let (rowid, last) = rows.last().unwrap();
    assert_eq!(*rowid, Some(24));
    let word = format!("{}3.5", "word ".repeat(11));
    assert_eq!(last[..], [Value::Null, Value::Text(&word), Value::Integer(2_995)]);
    let numbers: Vec<_> = rows.iter().map(|(rowid, _)| rowid.unwrap()).collect();
    assert!(numbers.is_sorted() && rows.iter().all(|(_, row)| row.len() == 3), "{rows:?}");
}

#[test]
fn pages_of_garbage_have_no_rows_and_do_no_harm() {
    let mut state = 1_u64;
    for kind in [0x0d, 0x0a, 0x02] {
        for _ in 0..200 {
            let mut page: Vec<u8> = (0..512)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            page[0] = kind;
            for cell in cells(&page, false) {
                values(cell.here);
            }
        }
    }
}
