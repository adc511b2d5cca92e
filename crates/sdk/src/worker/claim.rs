//! A claim from a server.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use switchyard_client::{Client, Error};
use switchyard_core::run::{ClaimRef, LogLine};
use switchyard_runtime::ClaimError;
use switchyard_runtime::handlers::{Beat, HeldClaim};

pub(super) struct ClaimThere {
    pub(super) client: Client,
    pub(super) claim: ClaimRef,
    pub(super) lease: Duration,
}

#[async_trait]
impl HeldClaim for ClaimThere {
    async fn checkpoint(&self, value: &Value) -> Result<(), ClaimError> {
        self.client.checkpoint(&self.claim, value).await.map(drop).map_err(claim_error)
    }

    async fn chunks(&self, chunks: Vec<Value>) -> Result<(), ClaimError> {
        self.client.chunks(&self.claim, &chunks).await.map(drop).map_err(claim_error)
    }

    async fn logs(&self, lines: Vec<LogLine>) -> Result<(), ClaimError> {
        self.client.log(&self.claim, &lines).await.map(drop).map_err(claim_error)
    }

    async fn heartbeat(&self) -> Result<Beat, ClaimError> {
        match self.client.heartbeat(&self.claim, self.lease).await.map_err(claim_error)? {
            switchyard_api::Beat::Held => Ok(Beat::GoOn),
            switchyard_api::Beat::Stop => Ok(Beat::Stop),
        }
    }
}

fn claim_error(error: Error) -> ClaimError {
    match &error {
        Error::Refused(problem) if problem.code == "too_many_chunks" => {
            ClaimError::Refused(error.to_string())
        }
        // The claim, its node or its run no longer exists.
        Error::Refused(problem) if matches!(problem.status, 404 | 409) => ClaimError::Lost,
        Error::Refused(problem) if problem.status < 500 => ClaimError::Refused(error.to_string()),
        _ => ClaimError::Unavailable(error.to_string()),
    }
}
