//! Waits until no run can progress without the clock or a caller.

use switchyard_core::run::{NodeState, Run};
use switchyard_core::{RunId, Timestamp};
use switchyard_runtime::{Engine, EngineError, Follow};
use switchyard_store::Unfinished;

/// Every unfinished run, and the seq of its newest event.
type Positions = Vec<(RunId, u64)>;

enum Look {
    /// A node of this run is queued or being executed.
    Busy(Follow),
    Idle(Positions),
    /// A run ended between listing the runs and reading it.
    Moved,
}

/// Waits until no node is queued or executed and no timer is due: then runs progress only if the clock moves or a
/// caller acts. Returns when the next timer is due.
pub(super) async fn settle(engine: &Engine) -> Result<Option<Timestamp>, EngineError> {
    let mut before: Option<(Positions, Option<Timestamp>)> = None;
    loop {
        match look(engine).await? {
            Look::Busy(follow) => {
                before = None;
                // The sender lives in the store. If it is gone, the next look returns the error.
                let _ = follow.news().await;
            }
            Look::Moved => before = None,
            Look::Idle(now) => match before.take() {
                // Runs are read one after the other. Seqs only grow, so if two rounds agree, no run changed between
                // the rounds, when the timers were checked.
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
        // Followed before it is read, so that no change is missed.
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
        // A paused or queued run hands out no tasks.
        NodeState::Ready => run.hands_out(),
        _ => false,
    })
}
