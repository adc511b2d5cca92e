//! `hitl`: asks a person.

use std::sync::Arc;

use switchyard_core::NodeError;
use switchyard_core::run::{ApprovalRequest, ApprovalTimeout, WaitFor};
use switchyard_lang::Template;
use switchyard_lang::program::CompiledHitl;
use switchyard_lang::spec::HitlTimeout;

use super::{Call, payload_error};
use crate::ids;

const APPROVER_BYTES_MAX: usize = 256;
const PROMPT_BYTES_MAX: usize = 16 * 1024;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledHitl) -> Result<WaitFor, NodeError> {
    let text = |field: &str, template: &Option<Template>, bytes_max| -> Result<Option<Arc<str>>, NodeError> {
        template.as_ref().map(|template| call.short_text(field, template, bytes_max)).transpose()
    };
    Ok(WaitFor::Approval(Box::new(ApprovalRequest {
        approval: ids::approval_id(),
        approver: text("approver", &spec.approver, APPROVER_BYTES_MAX)?,
        prompt: text("prompt", &spec.prompt, PROMPT_BYTES_MAX)?,
        payload: call.services.payloads.keep(&call.input()?).await.map_err(payload_error)?,
        timeout_at: call.node.timeout.map(|timeout| call.services.clock.now().plus(timeout)),
        on_timeout: match spec.on_timeout {
            HitlTimeout::Approve => ApprovalTimeout::Approve,
            HitlTimeout::Reject => ApprovalTimeout::Reject,
            HitlTimeout::Fail => ApprovalTimeout::Fail,
        },
    })))
}
