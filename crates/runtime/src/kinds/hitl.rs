//! `hitl`: asks a person.

use std::sync::Arc;

use switchyard_core::NodeError;
use switchyard_core::run::{ApprovalRequest, ApprovalTimeout, WaitFor};
use switchyard_lang::Template;
use switchyard_lang::program::CompiledHitl;
use switchyard_lang::spec::HitlTimeout;

use super::Call;
use crate::{AttemptError, ids};

const APPROVER_BYTES_MAX: usize = 256;
const PROMPT_BYTES_MAX: usize = 16 * 1024;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledHitl) -> Result<WaitFor, AttemptError> {
    Ok(WaitFor::Approval(Box::new(ApprovalRequest {
        approval: ids::approval_id(),
        approver: text(call, "approver", spec.approver.as_ref(), APPROVER_BYTES_MAX).await?,
        prompt: text(call, "prompt", spec.prompt.as_ref(), PROMPT_BYTES_MAX).await?,
        payload: call.services.payloads.keep(&call.input().await?).await?,
        timeout_at: call.node.timeout.map(|timeout| call.services.clock.now().plus(timeout)),
        on_timeout: match spec.on_timeout {
            HitlTimeout::Approve => ApprovalTimeout::Approve,
            HitlTimeout::Reject => ApprovalTimeout::Reject,
            HitlTimeout::Fail => ApprovalTimeout::Fail,
        },
    })))
}

async fn text(
    call: &Call<'_>,
    field: &str,
    template: Option<&Template>,
    bytes_max: usize,
) -> Result<Option<Arc<str>>, NodeError> {
    match template {
        Some(template) => call.short_text(field, template, bytes_max).await.map(Some),
        None => Ok(None),
    }
}
