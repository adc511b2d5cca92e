//! Routes settlements to the fast path, one call of `step.lua`, or to the slow path, where the core decides.
//!
//! This process sends to the slow path, before any call: failures, waits and retries, nodes with more dependents than
//! one call releases, and nodes whose graph it does not know.
//!
//! `includes/settle.lua` sends to the slow path, with the answer [`SLOW`], what only Redis can know:
//! - the run is queued or closing, or is on another graph since a patch
//! - the run caps its parallelism
//! - the run would end, and has a parent to tell, a concurrency key to leave, or timers to remove
//! - a node would be released that reads the outputs of very many others

use std::collections::VecDeque;

use switchyard_core::run::{Settlement, TaskOutcome};

use super::AT_ONCE;
use crate::store::RedisStore;

/// The script's answer to a settlement that it leaves to the core.
pub(super) const SLOW: char = 'r';

/// The most edges that the settlements of one call decide. The core settles a node with more, which need not happen in
/// one call.
pub(super) const EDGES_AT_ONCE: usize = 1_000;

impl RedisStore {
    /// Whether the script can carry out a settlement, judging by the settlement and the graph.
    pub(super) fn fits_script(&self, settlement: &Settlement) -> bool {
        let kind = matches!(
            settlement.outcome,
            TaskOutcome::Succeeded(_)
                | TaskOutcome::Skipped(_)
                | TaskOutcome::HandedBack
                | TaskOutcome::Cancelled
        );
        kind && self.edges(settlement).is_some_and(|edges| edges <= EDGES_AT_ONCE)
    }

    /// How many of the first settlements fit one call of the script.
    pub(super) fn fit_one_call(&self, open: &VecDeque<Settlement>) -> usize {
        let mut edges = 0;
        let fits = |(count, settlement): &(usize, &Settlement)| {
            edges += self.edges(settlement).unwrap_or(0);
            self.fits_script(settlement) && (*count == 0 || edges <= EDGES_AT_ONCE)
        };
        open.iter().take(AT_ONCE).enumerate().take_while(fits).count()
    }

    /// How many of the first settlements are of runs on one graph: if the script leaves one to the core, it is likely
    /// to leave all of them.
    pub(super) fn alike(&self, open: &VecDeque<Settlement>) -> usize {
        let definition = |settlement: &Settlement| self.graphs.of_run(settlement.claim.run);
        let first = open.front().and_then(definition);
        open.iter().take_while(|settlement| definition(settlement) == first).count().max(1)
    }

    /// How many edges a settlement decides, if its graph is known.
    pub(crate) fn edges(&self, settlement: &Settlement) -> Option<usize> {
        let (graph, ix, _) = self.graph_of_claim(&settlement.claim)?;
        Some(graph.ir.node(ix).dependents.len())
    }
}
