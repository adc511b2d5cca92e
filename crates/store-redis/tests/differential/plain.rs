//! Plain readers among the workers. Only Redis has them, so only Redis is compared with the core.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use switchyard_core::RunId;
use switchyard_core::in_flight::Taker;
use switchyard_core::run::{Event, Settlement, Task};
use switchyard_store::plain::{About, Found, Offer, PlainWorkers};
use switchyard_store_redis::Keys;

use crate::ops::Said;
use crate::world::{LEASE, World, claim_of};

/// Longer than any worker has been silent: the pass only removes void entries and creates missing groups.
const LONG: Duration = Duration::from_secs(3_600);

type Entries = Vec<(String, HashMap<String, String>)>;

impl World {
    /// A reader takes the next task of a stream, void or not, and sends a signal about it.
    pub(crate) async fn read_task(&mut self, stream: u8, said: Said, out: &mut Vec<Event>) {
        let plain = self.plain.clone().expect("a store with streams");
        plain.take_back(LONG).await.expect("looked through");
        plain.take_signals().await.expect("signals of others are not settled");
        let Some(about) = self.next_task(stream) else { return };
        let found = plain.find_node(&about).await.expect("answered");
        let (now, lease) = (self.now(), matches!(said, Said::Started).then_some(LEASE));
        if matches!(said, Said::Nothing) {
            let lost = self.in_flight.lose_node(about.run, &about.node, &about.worker, now, out);
            let taken = plain.take_back(Duration::ZERO).await.expect("looked through");
            assert_eq!(taken, usize::from(lost), "{about:?} was {found:?}");
            return;
        }
        let by = Taker { worker: &about.worker, lease };
        let task = self.in_flight.claim_node(about.run, &about.node, &by, now, out);
        let Some((offer, task)) = both(&about, found, task) else { return };
        let claim = claim_of(&task);
        let taken = match said {
            Said::Ended(how) => {
                let outcome = how.outcome(now, &mut self.counter);
                self.in_flight.settle(
                    Settlement { claim: claim.clone(), outcome: outcome.clone() },
                    now,
                    out,
                );
                self.settled.push(claim);
                plain.settle_offer("signal", &about, &offer, &outcome).await
            }
            _ => {
                self.held.push(claim);
                plain.claim_offer("signal", &about, &offer, LEASE, "answer").await
            }
        };
        assert!(taken.expect("answered"), "{about:?} was not changed since it was offered");
    }

    /// Reads the next task of a stream. `None` if its run has replaced the entry by another.
    fn next_task(&self, stream: u8) -> Option<About> {
        let client = redis::Client::open(self.server.url()).expect("an address");
        let mut connection = client.get_connection().expect("Redis answers");
        let keys = Keys::new("", 0, 1);
        let known = redis::cmd("SMEMBERS").arg(keys.streams()).query(&mut connection);
        let mut streams: Vec<String> = known.expect("a set");
        streams.sort_unstable();
        let stream = streams.get(usize::from(stream) % streams.len().max(1))?;
        let mut read = redis::cmd("XREADGROUP");
        read.arg(&["GROUP", "workers", "plain", "COUNT", "1", "STREAMS", stream, ">"]);
        let read: Option<Vec<(String, Entries)>> = read.query(&mut connection).expect("the group is there");
        let (entry, fields) = read?.pop()?.1.pop()?;
        let run: RunId = fields["run_id"].parse().expect("a run");
        let generation: Option<String> =
            redis::cmd("HGET").arg(keys.run(run)).arg("gen").query(&mut connection).expect("a hash");
        let about = About {
            run,
            node: fields["node_id"].as_str().into(),
            delivery: Some(entry),
            worker: "plain".into(),
        };
        (generation.as_ref() == Some(&fields["gen"])).then_some(about)
    }
}

/// The task that both the store and the core offer; `None` if neither does. Panics if they disagree.
fn both(about: &About, found: Found, task: Option<Task>) -> Option<(Offer, Task)> {
    match (found, task) {
        (Found::Ready(offer), Some(task)) => {
            assert_eq!(claim_of(&offer.task), claim_of(&task), "{about:?}");
            assert_eq!(offer.task.attempt, task.attempt, "{about:?}");
            Some((*offer, task))
        }
        (Found::Passed | Found::NotHere, None) => None,
        (found, task) => panic!("{about:?} is {found:?}, and the core says {task:?}"),
    }
}

pub(crate) type Plain = Option<Arc<dyn PlainWorkers>>;
