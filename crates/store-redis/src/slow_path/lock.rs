//! Locks and reads runs with more nodes than a script should read in one call. A process locks such a run while it
//! reads it in pieces: steps of the run wait, because otherwise they would make every decision about a busy run fail.

use std::collections::BTreeMap;
use std::time::Duration;

use switchyard_core::{RunId, Timestamp};
use switchyard_store::StoreError;

use super::load::Found;
use crate::record::Fields;
use crate::scripts;
use crate::store::RedisStore;

/// The number of fields from which a hash counts as large.
pub(super) const LARGE: usize = 2_000;
/// How long a run is locked at most, which is how long its steps wait if the owner of the lock was killed.
const LOCKED: Duration = Duration::from_secs(10);
/// How often to look whether another process has unlocked the run.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// About how many fields one command reads.
const PAGE: usize = 1_000;

impl RedisStore {
    /// Waits until a run is not locked, and locks it. Returns the name of the lock's owner.
    pub(super) async fn lock_run(&self, run: RunId) -> Result<String, StoreError> {
        let owner = format!("{}/{:016x}", self.name, rand::random::<u64>());
        let looks = 2 * LOCKED.as_millis() / LOOK_EVERY.as_millis();
        for _ in 0..looks {
            if self.set_lock(run, &owner, LOCKED).await? || !self.is_here(run).await? {
                return Ok(owner);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(StoreError::unavailable(format!("{run} is being changed by others all the time; try again")))
    }

    /// Unlocks a run. If that fails, the lock expires.
    pub(super) async fn unlock_run(&self, run: RunId, owner: &str) {
        let _ = self.set_lock(run, owner, Duration::ZERO).await;
    }

    async fn set_lock(&self, run: RunId, owner: &str, lasts: Duration) -> Result<bool, StoreError> {
        let args = [self.time(), owner.to_owned(), lasts.as_millis().to_string()];
        let locked = self.client.run::<u8>(&scripts::LOCK_RUN, &[self.keys.run(run)], &args).await;
        Ok(locked.map_err(StoreError::not_applied)? == 1)
    }

    async fn is_here(&self, run: RunId) -> Result<bool, StoreError> {
        self.client.query(redis::cmd("EXISTS").arg(self.keys.run(run))).await
    }

    /// Reads the nodes, context and leases of a locked run, which the script has left out.
    pub(super) async fn read_large(&self, found: &mut Found) -> Result<(), StoreError> {
        found.record.dag = self.scan(&self.keys.dag(found.id)).await?;
        found.record.context = self.scan(&self.keys.context(found.id)).await?;
        found.leases = self.leases_of(found.id, &found.record.dag).await?;
        Ok(())
    }

    async fn scan(&self, key: &str) -> Result<Fields, StoreError> {
        let (mut fields, mut cursor) = (Fields::new(), 0);
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(key).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, page): (u64, Vec<(String, String)>) = self.client.query(&scan).await?;
            fields.extend(page);
            cursor = next;
            if cursor == 0 {
                return Ok(fields);
            }
        }
    }

    /// Reads the leases of a run's claims, as `load.lua` does for small runs.
    async fn leases_of(&self, run: RunId, dag: &Fields) -> Result<BTreeMap<String, Timestamp>, StoreError> {
        let claim = |line: &String| {
            let mut words = line.split(' ');
            (words.next() == Some("R")).then(|| words.nth(1).unwrap_or_default().to_owned())
        };
        let held: Vec<(&String, String)> =
            dag.iter().filter_map(|(node, line)| Some((node, claim(line)?))).collect();
        let mut leases = BTreeMap::new();
        for held in held.chunks(PAGE) {
            let members: Vec<String> =
                held.iter().map(|(node, claim)| format!("{run} {claim} {node}")).collect();
            let mut ask = redis::cmd("ZMSCORE");
            let ends: Vec<Option<f64>> = self.client.query(ask.arg(self.keys.leases()).arg(&members)).await?;
            leases.extend(
                held.iter().zip(ends).filter_map(|((node, _), end)| {
                    Some(((*node).clone(), Timestamp::from_millis(end? as i64)))
                }),
            );
        }
        Ok(leases)
    }
}
