//! References from the archive to payloads of the CAS.

use std::collections::HashSet;

use async_trait::async_trait;
use switchyard_core::{Hash, Timestamp};

use crate::StoreError;

/// Knows which runs, schedules and remembered results mention a payload of the CAS.
#[async_trait]
pub trait PayloadHolders: Send + Sync + 'static {
    /// The payloads, of these, that a record of this archive mentions or mentioned after `since`.
    async fn held_payloads(&self, of: &[Hash], since: Timestamp) -> Result<HashSet<Hash>, StoreError>;
}
