//! Log lines made from events: runs at `info`, steps at `debug`.

use switchyard_core::run::{Event, EventKind};

pub(crate) fn happened(events: &[Event]) {
    // One check for the whole batch: with the default filter, logging costs no more than this.
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    events.iter().for_each(line);
}

fn line(event: &Event) {
    let (run, seq) = (event.run, event.seq);
    match &event.kind {
        EventKind::RunAccepted(accepted) => {
            tracing::info!(%run, workflow = %accepted.workflow, queued = accepted.queued, "run accepted");
        }
        EventKind::RunEnded { status, error, .. } => {
            let error = error.as_ref().map(|error| &*error.message);
            tracing::info!(%run, ?status, error, "run ended");
        }
        EventKind::NodeStarted { node, attempt, worker, .. } => {
            tracing::debug!(%run, seq, %node, attempt, %worker, "step claimed");
        }
        EventKind::NodeFailed { node, attempt, error } => {
            tracing::info!(%run, seq, %node, attempt, code = %error.code, error = %error.message, "step failed");
        }
        EventKind::NodeRetrying { node, attempt, error, at } => {
            tracing::info!(%run, seq, %node, attempt, code = %error.code, error = %error.message, again_at = %at, "step failed and is tried again");
        }
        kind => match kind.node() {
            Some(node) => tracing::debug!(%run, seq, %node, "{}", kind.name()),
            None => tracing::info!(%run, seq, "{}", kind.name()),
        },
    }
}
