//! A hot store and an archive that do not belong together.

use std::sync::Arc;

use switchyard_core::Timestamp;

use crate::ArchiveMark;

/// Why a hot store and an archive are not used together. `hot` names the hot store in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("{hot} belongs to archive {id} at {location}, and this process has archive {} at {}", ours.id, ours.location)]
    OtherArchive { hot: Arc<str>, id: Arc<str>, location: Arc<str>, ours: ArchiveMark },

    #[error(
        "archive {} at {} ends at {}, and {hot} has seen it at {known}: it was restored to an earlier time",
        ours.id, ours.location, ours.position
    )]
    WentBack { hot: Arc<str>, known: Timestamp, ours: ArchiveMark },

    #[error("{hot} is being rebuilt, or a rebuild of it was interrupted")]
    Rebuilding { hot: Arc<str> },
}
