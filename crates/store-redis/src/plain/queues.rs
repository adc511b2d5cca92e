//! Queue depths, of plain workers and all others.

use std::collections::BTreeMap;

use switchyard_core::Timestamp;
use switchyard_core::in_flight::{BandDepth, QueueDepth};
use switchyard_store::StoreError;

use crate::scripts;
use crate::store::RedisStore;

impl RedisStore {
    /// The depth of every queue that a known graph has nodes for.
    pub(crate) async fn look_at_queues(&self) -> Result<Vec<QueueDepth>, StoreError> {
        let streams = self.streams().await?;
        let none: [&str; 0] = [];
        let counts: Vec<(usize, usize, String)> = self.client.run(&scripts::QUEUES, &streams, &none).await?;
        let mut queues: BTreeMap<&str, [BandDepth; 3]> = BTreeMap::new();
        for (stream, (waiting, claimed, oldest)) in streams.iter().zip(counts) {
            let Some((queue, band)) = self.keys.queue_of(stream) else { continue };
            let oldest = oldest.parse().ok().map(Timestamp::from_millis);
            queues.entry(queue).or_default()[band] = BandDepth { waiting, claimed, oldest };
        }
        Ok(queues.into_iter().map(|(queue, bands)| QueueDepth { queue: queue.into(), bands }).collect())
    }
}
