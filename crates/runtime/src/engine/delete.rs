//! Deletes runs before retention does.

use switchyard_core::run::Refusal;
use switchyard_core::{OperationId, RunId};
use switchyard_store::{DeleteRequest, Deletion, Mutation, Tombstone};

use super::{Engine, EngineError, History};
use crate::Principal;

impl History {
    /// The latest deletions first.
    pub async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, EngineError> {
        Ok(self.archive.tombstones(limit).await?)
    }
}

impl Engine {
    /// Deletes an ended run with its events, approvals, labels, dead letters and descendants. The retention duty
    /// removes its payloads after the grace period, if nothing else mentions them. A repetition gets the same answer.
    pub async fn delete_run(
        &self,
        by: &Principal,
        run: RunId,
        id: &OperationId,
        reason: &str,
    ) -> Result<Tombstone, EngineError> {
        let request = self.asks(by, id, "delete_run", &(run, reason))?;
        let deletion = self.mutate(&request, || async move {
            // An ended run that is being retried is in flight before its history says so.
            if let Some(state) = self.hot.snapshot(run).await? {
                return Err(Refusal::WrongStatus { status: state.status(), verb: "deleted" }.into());
            }
            let (at, by) = (self.clock.now(), by.name().clone());
            Ok(Mutation::DeleteRun(Box::new(DeleteRequest { run, at, by, reason: reason.into() })))
        });
        match deletion.await?.deletion()? {
            Deletion::Deleted(tombstone) | Deletion::Before(tombstone) => Ok(tombstone),
            Deletion::ChildOf(parent) => Err(EngineError::BadRequest(format!(
                "{run} was started by {parent} and goes with it: delete {parent}"
            ))),
            Deletion::UnderWay => self.still_under_way(run).await,
            Deletion::Unknown => Err(EngineError::UnknownRun(run)),
        }
    }

    async fn still_under_way(&self, run: RunId) -> Result<Tombstone, EngineError> {
        let record = self.history.run(run).await?;
        match record.status.is_terminal() {
            true => Err(EngineError::BadRequest(format!(
                "{run} has started runs that have not ended: cancel them first, or wait for them"
            ))),
            false => Err(Refusal::WrongStatus { status: record.status, verb: "deleted" }.into()),
        }
    }
}
