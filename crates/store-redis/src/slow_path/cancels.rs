//! Cancels children because their parent stops. If there are too many for one commit, the commit that stops the parent
//! puts them into the set `wf.cancels`, and the timer duty cancels them from there in batches.

use switchyard_core::Timestamp;
use switchyard_core::in_flight::{ChildToCancel, InFlight};
use switchyard_core::run::Event;
use switchyard_store::StoreError;

use super::ReadSet;
use crate::store::RedisStore;

/// How many children one batch cancels.
const AT_ONCE: usize = 200;

/// The member of `wf.cancels` for a child.
pub(super) fn member(to_cancel: &ChildToCancel) -> String {
    let ChildToCancel { child, compensate, stop_by } = to_cancel;
    let stop_by = stop_by.map_or_else(String::new, |at| at.as_millis().to_string());
    format!("{child} {} {stop_by}", u8::from(*compensate))
}

impl RedisStore {
    /// Cancels one batch of the children in `wf.cancels`. Whether more may be left.
    pub(crate) async fn cancel_some(&self) -> Result<bool, StoreError> {
        let key = self.keys.cancels();
        let members: Vec<String> =
            self.client.query(redis::cmd("SRANDMEMBER").arg(&key).arg(AT_ONCE)).await?;
        if members.is_empty() {
            return Ok(false);
        }
        let children: Vec<ChildToCancel> = members.iter().filter_map(|member| read_member(member)).collect();
        let runs = children.iter().map(|to_cancel| to_cancel.child).collect();
        let read_set = ReadSet { runs, ..ReadSet::default() };
        self.decide(read_set, |in_flight: &mut InFlight, now, out: &mut Vec<Event>| {
            for to_cancel in &children {
                in_flight.cancel_child(*to_cancel, now, out);
            }
        })
        .await?;
        // Cancelling a child twice does no harm, so this need not be part of the same commit.
        self.client.query::<()>(redis::cmd("SREM").arg(&key).arg(&members)).await?;
        Ok(true)
    }
}

fn read_member(member: &str) -> Option<ChildToCancel> {
    let mut words = member.split(' ');
    let child = words.next()?.parse().ok()?;
    let compensate = words.next()? == "1";
    let stop_by = words.next()?.parse().ok().map(Timestamp::from_millis);
    Some(ChildToCancel { child, compensate, stop_by })
}
