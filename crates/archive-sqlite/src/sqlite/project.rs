//! The rows of runs and approvals that follow from an event. The table of what follows is [`follow`].

use rusqlite::{Connection, params};
use switchyard_core::run::{
    Accepted, ApprovalRequest, Decision, Event, EventKind, Operation, RunStatus, WaitFor,
};
use switchyard_core::{ApprovalId, Timestamp, error::RunError};
use switchyard_store::{ApprovalStatus, DeadLetter};

use super::dead_letters;
use super::work::Failure;

/// A run that was taken in; answers its number.
pub(super) fn accept(conn: &Connection, event: &Event, accepted: &Accepted) -> Result<i64, Failure> {
    let status = if accepted.queued { RunStatus::Queued } else { RunStatus::Running };
    let idempotency = accepted.idempotency.as_ref();
    let no = conn
        .prepare_cached(
            "INSERT INTO runs (id, workflow, workflow_version, definition, status, queued, accepted_at, parent,
                               idempotency_key, idempotency_body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .insert(params![
            event.run.to_string(),
            accepted.workflow,
            accepted.workflow_version,
            accepted.definition.to_string(),
            status.as_str(),
            accepted.queued,
            event.at.as_millis(),
            accepted.parent.as_ref().map(|parent| parent.run.to_string()),
            idempotency.map(|i| &i.key),
            idempotency.map(|i| i.body.to_string()),
        ])
        .map_err(|e| taken_key(e.into(), event, accepted))?;
    Ok(no)
}

/// The hot store lets a key in only once, so a second run with it is a bug that should name itself.
fn taken_key(failure: Failure, event: &Event, accepted: &Accepted) -> Failure {
    match (failure, &accepted.idempotency) {
        (Failure::Refused(why), Some(idempotency)) => Failure::contradiction(format!(
            "{} was accepted with idempotency key `{}`, which another run has ({why})",
            event.run, idempotency.key
        )),
        (failure, _) => failure,
    }
}

/// What an event changes apart from being there.
pub(super) fn follow(conn: &Connection, run_no: i64, event: &Event) -> Result<(), Failure> {
    use EventKind as E;
    if let Some(operation) = event.kind.operation() {
        remember(conn, run_no, event.seq, operation)?;
    }
    match &event.kind {
        E::RunStarted {} => start(conn, run_no),
        E::RunPaused { .. } => set_status(conn, run_no, RunStatus::Paused),
        E::RunResumed { .. } => resume(conn, run_no),
        E::RunClosing { .. } => {
            set_status(conn, run_no, RunStatus::Closing)?;
            withdraw_all(conn, event)
        }
        E::RunCompensating {} => set_status(conn, run_no, RunStatus::Compensating),
        E::RunEnded { status, error, .. } => {
            end(conn, run_no, (*status).into(), Some(event.at), error.as_ref())
        }
        E::RunRetried { reset, .. } => {
            end(conn, run_no, RunStatus::Running, None, None)?;
            dead_letters::revive(conn, event, reset)
        }
        E::NodeWaiting { node, on: WaitFor::Approval(request) } => ask(conn, event, node, request),
        E::ApprovalDecided { approval, decision, by, comment, .. } => {
            decide(conn, approval, *decision, event.at, by, comment)
        }
        E::NodeFailed { node, .. } => {
            withdraw(conn, event, node, ApprovalStatus::TimedOut)?;
            DeadLetter::of(event).map_or(Ok(()), |letter| dead_letters::bury(conn, &letter))
        }
        E::NodeCancelled { node } => withdraw(conn, event, node, ApprovalStatus::Cancelled),
        E::RunAccepted(_)
        | E::RunPatched(_)
        | E::SignalReceived { .. }
        | E::NodeStarted { .. }
        | E::NodeSucceeded { .. }
        | E::NodeRetrying { .. }
        | E::NodeSkipped { .. }
        | E::NodeWaiting { .. }
        | E::NodeWoken { .. }
        | E::NodeReleased { .. }
        | E::NodeCheckpointed { .. }
        | E::NodeChunks { .. }
        | E::ChildStarted { .. }
        | E::ChildEnded { .. } => Ok(()),
    }
}

fn remember(conn: &Connection, run_no: i64, seq: u64, operation: &Operation) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO run_operations (run_no, id, seq, command) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        run_no,
        operation.id.as_str(),
        seq.cast_signed(),
        operation.command.to_string()
    ])?;
    Ok(())
}

fn set_status(conn: &Connection, run_no: i64, status: RunStatus) -> Result<(), Failure> {
    conn.prepare_cached("UPDATE runs SET status = ?2 WHERE no = ?1")?
        .execute(params![run_no, status.as_str()])?;
    Ok(())
}

/// A paused run that is let in stays paused.
fn start(conn: &Connection, run_no: i64) -> Result<(), Failure> {
    conn.prepare_cached(
        "UPDATE runs SET queued = 0, status = iif(status = 'queued', 'running', status) WHERE no = ?1",
    )?
    .execute([run_no])?;
    Ok(())
}

/// A paused run goes back to the line if it has not been let in.
fn resume(conn: &Connection, run_no: i64) -> Result<(), Failure> {
    conn.prepare_cached(
        "UPDATE runs SET status = iif(queued, 'queued', 'running') WHERE no = ?1 AND status = 'paused'",
    )?
    .execute([run_no])?;
    Ok(())
}

/// An ended run, or one that starts over.
fn end(
    conn: &Connection,
    run_no: i64,
    status: RunStatus,
    at: Option<Timestamp>,
    error: Option<&RunError>,
) -> Result<(), Failure> {
    let error = error.map(serde_json::to_string).transpose()?;
    conn.prepare_cached("UPDATE runs SET status = ?2, queued = 0, ended_at = ?3, error = ?4 WHERE no = ?1")?
        .execute(params![run_no, status.as_str(), at.map(Timestamp::as_millis), error])?;
    Ok(())
}

fn ask(conn: &Connection, event: &Event, node: &str, request: &ApprovalRequest) -> Result<(), Failure> {
    // An id that comes again is the same question asked again: the newest stands.
    conn.prepare_cached(
        "INSERT OR REPLACE INTO approvals
             (id, run, node, status, approver, prompt, payload, created_at, timeout_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        request.approval.as_str(),
        event.run.to_string(),
        node,
        ApprovalStatus::Pending.as_str(),
        request.approver,
        request.prompt,
        serde_json::to_string(&request.payload)?,
        event.at.as_millis(),
        request.timeout_at.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

fn decide(
    conn: &Connection,
    approval: &ApprovalId,
    decision: Decision,
    at: Timestamp,
    by: &str,
    comment: &str,
) -> Result<(), Failure> {
    let status = match decision {
        Decision::Approved => ApprovalStatus::Approved,
        Decision::Rejected => ApprovalStatus::Rejected,
    };
    conn.prepare_cached(
        "UPDATE approvals SET status = ?2, decided_at = ?3, decided_by = ?4, comment = nullif(?5, '')
         WHERE id = ?1",
    )?
    .execute(params![approval.as_str(), status.as_str(), at.as_millis(), by, comment])?;
    Ok(())
}

/// The question of one node is no longer open. The plus keeps SQLite from going through all that is pending instead
/// of through what this run has.
fn withdraw(conn: &Connection, event: &Event, node: &str, status: ApprovalStatus) -> Result<(), Failure> {
    conn.prepare_cached(
        "UPDATE approvals SET status = ?3 WHERE run = ?1 AND node = ?2 AND +status = 'pending'",
    )?
    .execute(params![event.run.to_string(), node, status.as_str()])?;
    Ok(())
}

fn withdraw_all(conn: &Connection, event: &Event) -> Result<(), Failure> {
    conn.prepare_cached("UPDATE approvals SET status = ?2 WHERE run = ?1 AND +status = 'pending'")?
        .execute(params![event.run.to_string(), ApprovalStatus::Cancelled.as_str()])?;
    Ok(())
}
