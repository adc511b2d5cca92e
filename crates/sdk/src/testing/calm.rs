//! When nothing moves any more.

use switchyard_core::run::{NodeState, Run};
use switchyard_core::{RunId, Timestamp};
use switchyard_runtime::{Engine, EngineError, Follow};
use switchyard_store::Unfinished;

/// Every unfinished run, and the seq of its newest event.
type Positions = Vec<(RunId, u64)>;

enum Look {
    /// A worker has something to do in this run.
    Busy(Follow),
    Idle(Positions),
    /// A run ended while it was looked at.
    Moved,
}

/// Returns when no node is queued or executed and no timer is due: from then on only the clock, or a caller outside,
/// moves anything. Says when the next timer is due.
pub(super) async fn settle(engine: &Engine) -> Result<Option<Timestamp>, EngineError> {
    let mut before: Option<(Positions, Option<Timestamp>)> = None;
    loop {
        match look(engine).await? {
            Look::Busy(follow) => {
                before = None;
                // The sender lives in the store. Should it go, the next look tells.
                let _ = follow.news().await;
            }
            Look::Moved => before = None,
            Look::Idle(now) => match before.take() {
                // Runs are looked at one after the other. Seqs only grow: where two rounds agree, that is how all
                // of them stood between the rounds, when the timers were looked at.
                Some((then, next)) if then == now => return Ok(next),
                _ => {
                    let (fired, next) = engine.fire_timers().await?;
                    before = (fired == 0).then_some((now, next));
                }
            },
        }
    }
}

async fn look(engine: &Engine) -> Result<Look, EngineError> {
    let mut standing = Positions::new();
    for Unfinished { run: id, .. } in engine.history().unfinished().await? {
        // Followed before it is looked at, so that no change falls between.
        let follow = engine.follow(id, 0);
        match engine.in_flight_state(id).await? {
            None => return Ok(Look::Moved),
            Some(run) if is_busy(&run) => return Ok(Look::Busy(follow)),
            Some(run) => standing.push((id, run.seq)),
        }
    }
    Ok(Look::Idle(standing))
}

fn is_busy(run: &Run) -> bool {
    run.nodes.iter().any(|node| match node.state {
        NodeState::Running => true,
        // A paused run, or one that stands in line, keeps its tokens to itself.
        NodeState::Ready => run.hands_out(),
        _ => false,
    })
}
