//! The order of a run's events: from 1 without gaps, the acceptance first and only there.

use switchyard_core::run::{Event, EventKind};

use crate::StoreError;

/// The position of an event relative to the stored history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind the newest event of its run.
    Next,
    /// An event with this seq is stored already. Its content is the same, or the two histories diverge.
    Taken,
}

/// Places an event of a run whose newest stored event is `last_seq` (0 if none). Refuses a gap, and a history
/// that begins with anything but an acceptance.
pub fn place(last_seq: u64, event: &Event) -> Result<Place, StoreError> {
    let Event { run, seq, .. } = event;
    if *seq <= last_seq {
        return Ok(Place::Taken);
    }
    if *seq != last_seq + 1 {
        return Err(StoreError::Corrupt(format!("event {seq} of {run} came after event {last_seq}")));
    }
    let begins = matches!(event.kind, EventKind::RunAccepted(_));
    if begins != (last_seq == 0) {
        return Err(StoreError::Corrupt(format!("{} is event {seq} of {run}", event.kind.name())));
    }
    Ok(Place::Next)
}
