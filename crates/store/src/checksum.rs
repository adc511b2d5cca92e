//! The checksum that an archive keeps with every event, so that a reader notices damage.

use switchyard_core::{RunId, Timestamp};

use crate::StoreError;

/// CRC-32, as zlib computes it, of `{run}/{seq}/{at}/{body}`: the event's run, number, time in milliseconds, and body
/// as it is stored. The checksum is stored permanently, so its computation never changes.
pub fn event_checksum(run: RunId, seq: u64, at: Timestamp, body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(format!("{run}/{seq}/{}/", at.as_millis()).as_bytes());
    sum.update(body);
    sum.finalize()
}

/// Refuses an event that does not match its checksum. Events of earlier releases have no checksum.
pub fn verify_event(
    stored: Option<i64>,
    run: RunId,
    seq: u64,
    at: Timestamp,
    body: &[u8],
) -> Result<(), StoreError> {
    match stored {
        Some(sum) if sum != i64::from(event_checksum(run, seq, at, body)) => {
            Err(StoreError::Corrupt(format!("event {seq} of {run} does not match its checksum")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybody_can_compute_it() {
        const CRC: u32 = 3_856_990_983;
        let run = RunId::new(Timestamp::from_millis(1_700_000_000_000), 7, 0);
        assert_eq!(run.to_string(), "run_01hf7yat00000000000000e000");
        // python3 -c "import zlib; print(zlib.crc32(b'run_01hf7yat00000000000000e000/2/1700000002000/{}'))"
        let at = Timestamp::from_millis(1_700_000_002_000);
        assert_eq!(event_checksum(run, 2, at, b"{}"), CRC);
        verify_event(Some(CRC.into()), run, 2, at, b"{}").unwrap();
        verify_event(None, run, 2, at, b"{}").unwrap();
        let refused = verify_event(Some(CRC.into()), run, 3, at, b"{}").unwrap_err();
        assert!(refused.to_string().contains(&format!("event 3 of {run}")), "{refused}");
    }
}
