//! Progress that a worker reports about a task it holds: checkpoints, streamed output, log lines.
//!
//! All are events, for the same two reasons: they survive the loss of the worker and of the store, and a client that
//! follows the run sees each of them once, in order.

use serde::{Deserialize, Serialize};

use super::*;

/// How many chunks one attempt at a node may stream. Bounded, because restoring a run reads its whole history.
pub const CHUNKS_MAX: u32 = 100_000;

/// A report by the holder of a claim, who keeps the claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// A checkpoint: the next attempt, or the next worker that receives this attempt, reads it back.
    Checkpoint(Payload),
    /// Streamed output, such as the tokens of a language model. Only shown: no expression can read it.
    Chunks(Vec<Payload>),
    /// Lines that the attempt logged. Lines beyond the bounds of an attempt are dropped.
    Logs(LogBatch),
}

/// The progress of a node so far. Boxed in [`NodeRun`], because most nodes report none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeProgress {
    pub checkpoint: Option<Payload>,
    /// The number of chunks that the current attempt has streamed.
    pub chunks: u32,
    #[serde(default)]
    pub logged: Logged,
}

impl Run {
    /// Records progress of a claim, if the claim is valid.
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
