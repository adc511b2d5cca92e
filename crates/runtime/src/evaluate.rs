//! Evaluates expressions without blocking the threads that serve requests and heartbeats.
//!
//! An evaluation is tried in place on a small budget, which is enough for nearly all. One that needs more is repeated
//! on a blocking thread with the whole budget: an evaluation has no effects, so it can be repeated. It ends when its
//! caller is gone, for example because the node was cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde_json::Value;
use switchyard_base::Diagnostics;
use switchyard_core::Labels;
use switchyard_core::labels::check_labels;
use switchyard_lang::limits::EVALUATION_TIME_MAX;
use switchyard_lang::{Budget, Expr, ExprError, Program, Scope, Template};
use tokio::sync::Semaphore;

/// The budget for evaluation in place: well below a millisecond.
const IN_PLACE_STEPS_MAX: u64 = 5_000;
const IN_PLACE_BYTES_MAX: u64 = 256 * 1024;

/// How many values of an input are checked in place, and how many bytes of text count as one more value.
const IN_PLACE_VALUES_MAX: usize = 5_000;
const BYTES_PER_VALUE: usize = 64;

/// Limits the evaluations on blocking threads: one core is left for serving.
static THREADS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(cores.saturating_sub(1).max(1)))
});

type Evaluate<C, T> = fn(&C, &Scope, &Budget<'_>) -> Result<T, ExprError>;

pub(crate) async fn render(template: &Template, scope: &Scope) -> Result<Value, ExprError> {
    evaluate(template, scope, Template::render).await
}

pub(crate) async fn render_text(template: &Template, scope: &Scope) -> Result<String, ExprError> {
    evaluate(template, scope, Template::render_text).await
}

/// The labels that a workflow gives a run with this input, or a sentence about an invalid one.
pub(crate) async fn render_labels(program: &Program, input: &Value) -> Result<Labels, String> {
    if program.labels().is_empty() {
        return Ok(Labels::new());
    }
    let scope = Scope::new(input.clone());
    let mut labels = Labels::new();
    for (key, template) in program.labels() {
        let value = render_text(template, &scope).await;
        let value = value.map_err(|error| format!("the workflow's label `{key}`: {error}"))?;
        labels.insert(key.clone(), value.into());
    }
    check_labels(&labels).map_err(|bad| format!("the workflow's labels: {bad}"))?;
    Ok(labels)
}

/// Whether a condition is true.
pub(crate) async fn holds(condition: &Expr, scope: &Scope) -> Result<bool, ExprError> {
    evaluate(condition, scope, Expr::eval_bool).await
}

/// Evaluates `code`, in place if the evaluation is short.
pub(crate) async fn evaluate<C, T>(code: &C, scope: &Scope, run: Evaluate<C, T>) -> Result<T, ExprError>
where
    C: Clone + Send + 'static,
    T: Send + 'static,
{
    evaluate_within(EVALUATION_TIME_MAX, code, scope, run).await
}

async fn evaluate_within<C, T>(
    time_max: Duration,
    code: &C,
    scope: &Scope,
    run: Evaluate<C, T>,
) -> Result<T, ExprError>
where
    C: Clone + Send + 'static,
    T: Send + 'static,
{
    if let Some(answer) = in_place(code, scope, run) {
        return answer;
    }
    let (code, scope) = (code.clone(), scope.clone());
    on_a_thread(move |is_abandoned| {
        let started = Instant::now();
        let is_over = || is_abandoned.load(Ordering::Relaxed) || started.elapsed() >= time_max;
        run(&code, &scope, &Budget::default().with_time_limit(time_max, &is_over))
    })
    .await
}

/// Evaluates in place; `None` if that exceeds the small budget.
fn in_place<C, T>(code: &C, scope: &Scope, run: Evaluate<C, T>) -> Option<Result<T, ExprError>> {
    let small = Budget::new(IN_PLACE_STEPS_MAX, IN_PLACE_BYTES_MAX);
    match run(code, scope, &small) {
        Err(error) if error.exceeded.is_some() => None,
        answer => Some(answer),
    }
}

/// [`Program::prepare_input`], in place if the check is short: the schema's defaults and lists of allowed values
/// count as well as the input.
pub(crate) async fn prepare_input(program: &Arc<Program>, input: Value) -> Result<Value, Diagnostics> {
    if is_small(&input) {
        let small = Budget::new(IN_PLACE_STEPS_MAX, IN_PLACE_BYTES_MAX);
        let prepared = program.prepare_input_within(input.clone(), &small);
        if small.exceeded().is_none() {
            return prepared;
        }
    }
    let program = program.clone();
    on_a_thread(move |is_abandoned| {
        let is_over = || is_abandoned.load(Ordering::Relaxed);
        let budget = Budget::default().with_time_limit(EVALUATION_TIME_MAX, &is_over);
        program.prepare_input_within(input, &budget)
    })
    .await
}

fn is_small(value: &Value) -> bool {
    fn count(value: &Value, left: &mut usize) -> bool {
        let size = 1 + value.as_str().map_or(0, |text| text.len() / BYTES_PER_VALUE);
        match left.checked_sub(size) {
            None => return false,
            Some(rest) => *left = rest,
        }
        match value {
            Value::Array(list) => list.iter().all(|item| count(item, left)),
            Value::Object(map) => map.values().all(|item| count(item, left)),
            _ => true,
        }
    }
    let mut left = IN_PLACE_VALUES_MAX;
    count(value, &mut left)
}

/// Runs `work` on a blocking thread. The flag tells `work` that its caller is gone.
async fn on_a_thread<T: Send + 'static>(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> T {
    let permit = THREADS.clone().acquire_owned().await;
    let caller = Caller::default();
    let is_abandoned = caller.0.clone();
    let thread = tokio::task::spawn_blocking(move || {
        // The thread holds the permit: a caller that is dropped does not free it before the work has ended.
        let _permit = permit;
        work(&is_abandoned)
    });
    match thread.await {
        Ok(answer) => answer,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and drops this future as well.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Sets the flag when the future that waits for an evaluation is dropped.
#[derive(Default)]
struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use serde_json::json;
    use switchyard_lang::Exceeded;
    use switchyard_lang::expr::vars;
    use tokio::sync::mpsc;

    use super::*;
    use crate::kinds::expression_error;

    const LONG: &str = "lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))";

    fn expr(source: &str) -> Expr {
        Expr::compile(source, vars::NODE).unwrap()
    }

    fn thread_of(expr: &Expr, scope: &Scope, budget: &Budget<'_>) -> Result<ThreadId, ExprError> {
        expr.eval(scope, budget).map(|_| thread::current().id())
    }

    #[tokio::test]
    async fn only_what_is_short_is_evaluated_in_place() {
        let scope = Scope::new(json!({}));
        let here = thread::current().id();
        assert_eq!(evaluate(&expr("1 + 1"), &scope, thread_of).await.unwrap(), here);
        assert_ne!(evaluate(&expr("lists.range(5000)"), &scope, thread_of).await.unwrap(), here);
        let long = Scope::new(json!({"text": "x".repeat(1_000_000)}));
        assert_ne!(evaluate(&expr("input.text"), &long, thread_of).await.unwrap(), here);
    }

    /// A small input with a large schema is not checked on the thread that serves requests.
    #[tokio::test]
    async fn an_input_with_a_long_check_is_not_checked_in_place() {
        let allowed: Vec<u32> = (0..20_000).collect();
        let program = Program::compile_value(&json!({
            "name": "t",
            "input": { "type": "array", "items": { "enum": allowed } },
            "nodes": { "a": { "type": "transform" } },
        }));
        let program = Arc::new(program.unwrap());
        let held = THREADS.clone().acquire_many_owned(THREADS.available_permits() as u32).await.unwrap();
        let mut checking = Box::pin(prepare_input(&program, json!(vec![19_999; 100])));
        assert!(futures::poll!(checking.as_mut()).is_pending(), "it waits for a thread");
        drop(held);
        assert_eq!(checking.await.unwrap(), json!(vec![19_999; 100]));
    }

    #[tokio::test]
    async fn only_time_is_worth_another_try() {
        let scope = Scope::new(json!({}));
        let none = Duration::ZERO;
        let error = evaluate_within(none, &expr(LONG), &scope, Expr::eval_bool).await.unwrap_err();
        assert_eq!(error.exceeded, Some(Exceeded::Time { max: none }));
        let error = expression_error(&error);
        assert_eq!((&*error.code, error.retryable), ("expression_budget", true));
        let endless = "lists.range(10000).all(x, lists.range(10000).all(y, x + y >= 0))";
        let hour = Duration::from_secs(3600);
        let error = evaluate_within(hour, &expr(endless), &scope, Expr::eval_bool).await.unwrap_err();
        let error = expression_error(&error);
        assert_eq!((&*error.code, error.retryable), ("expression_budget", false));
    }

    #[derive(Clone)]
    struct Watched {
        expr: Expr,
        news: mpsc::UnboundedSender<Option<Exceeded>>,
    }

    #[tokio::test]
    async fn an_evaluation_that_nobody_waits_for_ends() {
        let (news, mut heard) = mpsc::unbounded_channel();
        let watched = Watched { expr: expr(LONG), news };
        let scope = Scope::new(json!({}));
        let watch: Evaluate<Watched, bool> = |watched, scope, budget| {
            let _ = watched.news.send(None);
            let answer = watched.expr.eval_bool(scope, budget);
            let _ = watched.news.send(budget.exceeded());
            answer
        };
        let caller = tokio::spawn(async move {
            let hour = Duration::from_secs(3600);
            evaluate_within(hour, &watched, &scope, watch).await
        });
        // In place: begun, over budget. On the blocking thread: begun.
        for _ in 0..3 {
            heard.recv().await.unwrap();
        }
        caller.abort();
        let hour = Duration::from_secs(3600);
        assert_eq!(heard.recv().await.unwrap(), Some(Exceeded::Time { max: hour }));
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller() {
        let answer = tokio::spawn(on_a_thread(|_| -> () { panic!("as meant") })).await;
        assert!(answer.unwrap_err().is_panic());
    }
}
