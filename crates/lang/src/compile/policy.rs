//! Default policies, and the queue of a node.

use std::sync::Arc;
use std::time::Duration;

use switchyard_base::HumanDuration;
use switchyard_core::ir::{AttemptLimit, queue_name};
use switchyard_core::retry::{Backoff, RetryPolicy};

use crate::problem::{At, Problems};
use crate::program::BUILTINS;
use crate::spec::{BackoffSpec, KindSpec, RetrySpec};

pub(super) const PRIORITY_DEFAULT: u8 = 5;

const HTTP_TIMEOUT: Duration = Duration::from_secs(60);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30 * 60);

const ATTEMPTS_DEFAULT: u32 = 3;
const INITIAL_DEFAULT: Duration = Duration::from_secs(1);
const MAX_DEFAULT: Duration = Duration::from_secs(60);

/// The queue whose workers execute a node.
pub(super) fn queue(kind: &KindSpec) -> Arc<str> {
    match kind {
        KindSpec::Http(_) => "http".into(),
        KindSpec::Function(spec) => match &spec.queue {
            Some(queue) => format!("function.{queue}").into(),
            None if BUILTINS.contains(&spec.function.as_str()) => "builtin".into(),
            None => queue_name::of_function(&spec.function),
        },
        KindSpec::Command(_) => "command".into(),
        KindSpec::Transform(_) => "transform".into(),
        KindSpec::Sleep(_) | KindSpec::Wait(_) => "timer".into(),
        KindSpec::Hitl(_) => "hitl".into(),
        KindSpec::Map(_) | KindSpec::Loop(_) | KindSpec::Workflow(_) => "flow".into(),
    }
}

/// How long an attempt may take. The `timeout` of a `wait` or a `hitl` is how long the run waits, after the attempt.
pub(super) fn limit(kind: &KindSpec, timeout: Option<HumanDuration>) -> AttemptLimit {
    match (kind, timeout) {
        (KindSpec::Wait(_) | KindSpec::Hitl(_), _) => AttemptLimit::Unlimited,
        (_, Some(timeout)) => AttemptLimit::Own(timeout.0),
        (KindSpec::Http(_), None) => AttemptLimit::Own(HTTP_TIMEOUT),
        (KindSpec::Command(_), None) => AttemptLimit::Own(COMMAND_TIMEOUT),
        (KindSpec::Function(_), None) => AttemptLimit::Default,
        (_, None) => AttemptLimit::Unlimited,
    }
}

pub(super) fn retry(spec: Option<&RetrySpec>, at: &At<'_>, problems: &mut Problems) -> RetryPolicy {
    let Some(spec) = spec else { return RetryPolicy::none() };
    let initial = spec.initial.map_or(INITIAL_DEFAULT, |initial| initial.0);
    let max = spec.max.map_or(MAX_DEFAULT.max(initial), |max| max.0);
    if spec.initial.is_some() && initial > max {
        let hint = Some("raise `max` or lower `initial`".to_owned());
        problems.add(&at.key("retry").key("max"), "`max` is shorter than `initial`", hint);
    }
    RetryPolicy {
        max_attempts: spec.max_attempts.map_or(ATTEMPTS_DEFAULT, Into::into),
        backoff: match spec.backoff.unwrap_or_default() {
            BackoffSpec::Exponential => Backoff::Exponential,
            BackoffSpec::Linear => Backoff::Linear,
            BackoffSpec::Fixed => Backoff::Fixed,
        },
        initial: initial.min(max),
        max,
        jitter: spec.jitter.unwrap_or(true),
        non_retryable: spec.non_retryable.iter().map(|code| code.as_str().into()).collect(),
    }
}
