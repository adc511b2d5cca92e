//! Commands take effect once: they carry an operation id, and are sent again with it until their outcome is known.

use std::time::Duration;

use serde::Serialize;
use switchyard_core::in_flight::Command;
use switchyard_core::run::{Operation, Refusal};
use switchyard_core::{Hash, OperationId, RunId};
use switchyard_store::StoreError;
use tokio::time::Instant;

use super::{Engine, EngineError};

/// How long a command with an unknown outcome is sent again before the caller gets an error. With the last try an
/// answer takes about 15 s at most, less than the time-outs of usual clients, which would otherwise give up without
/// learning the operation id.
const KNOWN_WITHIN: Duration = Duration::from_secs(8);
/// The first and the longest wait before a command is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
const AGAIN_AFTER_MAX: Duration = Duration::from_millis(500);

/// The shortest time between two recovery passes that commands trigger.
const RECOVERY_APART: Duration = Duration::from_secs(1);

/// The operation with this id for a command: its hash covers everything that the caller chose, in a stable form.
pub(super) fn operation(id: &OperationId, asked: &impl Serialize) -> Operation {
    // Text, numbers and payloads always serialise.
    let asked = serde_json::to_vec(asked).unwrap_or_default();
    Operation { id: id.clone(), command: Hash::of(&asked) }
}

impl Engine {
    pub(super) async fn command(
        &self,
        run: RunId,
        operation: Operation,
        command: Command,
        verb: &'static str,
    ) -> Result<(), EngineError> {
        let id = operation.id.clone();
        self.until_known(&id, || self.try_command(run, &operation, command.clone(), verb)).await
    }

    /// See [`until_known`].
    pub(super) async fn until_known<T, F>(
        &self,
        id: &OperationId,
        attempt: impl Fn() -> F,
    ) -> Result<T, EngineError>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        until_known(id, attempt).await
    }

    pub(super) async fn try_command(
        &self,
        run: RunId,
        operation: &Operation,
        command: Command,
        verb: &'static str,
    ) -> Result<(), EngineError> {
        let begun = Instant::now();
        loop {
            match self.hot.command(run, operation.clone(), command.clone()).await {
                Err(StoreError::UnknownRun(_)) => {}
                other => return Ok(other?),
            }
            if self.is_known_to_archive(run, operation, verb).await? {
                return Ok(());
            }
            if begun.elapsed() >= KNOWN_WITHIN {
                let why = format!("{run} was lost by the hot store and is not rebuilt from its history yet");
                return Err(StoreError::Unavailable(why).into());
            }
            self.take_up_lost(run).await?;
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Whether an operation took effect on a run that the hot store lacks. Refused if the run has ended without it or
    /// does not exist; false if the run is unfinished in the archive.
    async fn is_known_to_archive(
        &self,
        run: RunId,
        operation: &Operation,
        verb: &'static str,
    ) -> Result<bool, EngineError> {
        match self.archive.run_operation(run, &operation.id).await? {
            Some(applied) if applied.command == operation.command => return Ok(true),
            Some(_) => return Err(Refusal::OperationReused(operation.id.clone()).into()),
            None => {}
        }
        match self.archive.run(run).await? {
            Some(record) if record.status.is_terminal() => {
                Err(Refusal::WrongStatus { status: record.status, verb }.into())
            }
            Some(_) => Ok(false),
            None => Err(EngineError::UnknownRun(run)),
        }
    }

    /// Makes a recovery pass, unless another process just did. Fails if this run cannot be restored.
    async fn take_up_lost(&self, run: RunId) -> Result<(), EngineError> {
        let recovered = self.recover_in_turn(RECOVERY_APART).await?.unwrap_or_default();
        let damaged = recovered.damaged.into_iter().find(|(damaged, _)| *damaged == run);
        damaged.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Repeats `attempt` while it is unknown whether an earlier try took effect. Each try must carry the same operation
/// id. After one unknown outcome, a later outage does not prove that the command had no effect.
pub(crate) async fn until_known<T, F>(id: &OperationId, attempt: impl Fn() -> F) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    let begun = Instant::now();
    let (mut wait, mut unknown) = (AGAIN_AFTER, false);
    loop {
        let why = match attempt().await {
            Err(EngineError::Store(StoreError::OutcomeUnknown(why))) => why,
            Err(EngineError::Store(error)) if unknown && error.is_outage() => error.to_string(),
            answer => return answer,
        };
        unknown = true;
        if begun.elapsed() + wait >= KNOWN_WITHIN {
            return Err(EngineError::OutcomeUnknown { operation: id.clone(), why });
        }
        tracing::warn!(operation = %id, why, "whether a command took effect is unknown; it is sent again");
        tokio::time::sleep(wait).await;
        wait = (2 * wait).min(AGAIN_AFTER_MAX);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchyard_core::run::Decision;
    use switchyard_core::{ApprovalId, Payload};

    use super::*;

    /// Histories store this hash, so its input must not change: `["signal","paid",{"json":{"n":1}}]`, and so on.
    #[test]
    fn the_hash_of_a_command_stays_as_it_is() {
        let of = |operation: Operation| operation.command.hex();
        let id = OperationId::drawn(1);
        let signal = operation(&id, &("signal", "paid", &Payload::from_value(&json!({"n": 1}))));
        assert_eq!(of(signal), "4dfe0b68250eccfde21488e495c2cc8cfc4cefe726ea1b5a294e42be0fe55ca1");
        let decide = ("decide", &ApprovalId::new("appr_1".to_owned()), Decision::Approved, "ada", "fine");
        assert_eq!(
            of(operation(&id, &decide)),
            "c55e3a4a0d7ab6f84ccc781e171dfa9b00dde628943374fdf3e4e8a6ddb84949"
        );
    }
}
