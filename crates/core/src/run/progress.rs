//! What a worker says about a task that it still holds: how far it is, what has come out so far, what it logs.
//!
//! All are events, for the same two reasons: they survive the loss of the worker and of the store, and who follows the
//! run sees them in order, none missing and none twice.

use serde::{Deserialize, Serialize};

use super::*;

/// Pieces of output that one attempt at a node may stream: a history is read whole when its run is taken up.
pub const CHUNKS_MAX: u32 = 100_000;

/// Reported by the holder of a claim; the claim goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// How far the node is: the next attempt, or the next worker that is handed this one, reads it back.
    Checkpoint(Payload),
    /// Output as it comes, such as the tokens of a language model. Only shown: no expression can read it.
    Chunks(Vec<Payload>),
    /// Lines that the attempt logged. What is beyond the bounds of an attempt is dropped.
    Logs(LogBatch),
}

/// What a node has said so far. Boxed in [`NodeRun`], because most nodes say nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeProgress {
    pub checkpoint: Option<Payload>,
    /// Of the current attempt.
    pub chunks: u32,
    #[serde(default)]
    pub logged: Logged,
}

impl Run {
    /// Records progress of a claim, if it is the one that counts right now.
    pub fn progress(
        &mut self,
        claim: &ClaimRef,
        progress: Progress,
        now: Timestamp,
        out: &mut Changes,
    ) -> Result<Settled, Refusal> {
        let Some(ix) = self.ir.find(&claim.node) else { return Ok(Settled::Stale) };
        let standing = self.standing(ix, claim.claim);
        if standing != Settled::Applied {
            return Ok(standing);
        }
        let node = self.id_of(ix);
        let event = match progress {
            Progress::Checkpoint(value) => EventKind::NodeCheckpointed { node, value },
            Progress::Chunks(chunks) => {
                self.check_chunks(ix, &chunks)?;
                EventKind::NodeChunks { node, attempt: self.node(ix).attempt, chunks }
            }
            Progress::Logs(batch) => match self.log_event(ix, batch) {
                Some(event) => event,
                None => return Ok(Settled::Applied),
            },
        };
        self.emit(event, now, out);
        Ok(Settled::Applied)
    }

    fn check_chunks(&self, ix: NodeIx, more: &[Payload]) -> Result<(), Refusal> {
        let before = self.node(ix).said.as_ref().map_or(0, |said| said.chunks) as usize;
        if before + more.len() > CHUNKS_MAX as usize {
            return Err(Refusal::TooManyChunks(CHUNKS_MAX));
        }
        Ok(())
    }

    pub(super) fn on_node_checkpointed(&mut self, ix: NodeIx, value: &Payload) -> bool {
        let node = self.node_mut(ix);
        node.said.get_or_insert_default().checkpoint = Some(value.clone());
        node.state == NodeState::Running
    }

    pub(super) fn on_node_chunks(&mut self, ix: NodeIx, chunks: &[Payload]) -> bool {
        let node = self.node_mut(ix);
        node.said.get_or_insert_default().chunks += chunks.len() as u32;
        node.state == NodeState::Running
    }
}
