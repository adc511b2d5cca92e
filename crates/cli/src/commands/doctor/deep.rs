//! `switchyard doctor --deep`: checks every history, event by event.

use std::path::Path;
use std::time::{Duration, Instant};

use switchyard_host::embedded::{RunFault, Surveyed};
use switchyard_runtime::{Audit, History};
use switchyard_store::{Check, Health, StoreError};

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::{store, stores};

/// The most damaged runs that are listed; the count covers all of them.
const NAMED_MAX: usize = 1_000;

/// Checks every history in a Postgres.
pub(super) async fn shared(settings: &Settings) -> Result<Vec<Check>, Failure> {
    let Some(target) = stores::postgres(settings)? else { return Ok(Vec::new()) };
    let advice = "restore what is missing from a backup; runs that are not named are whole";
    Ok(match stores::shared_history(settings, target).await {
        Ok(history) => audited(audit(&history).await, advice),
        Err(failure) => {
            vec![Check::failed("histories", words(&failure), "`switchyard migrate`, and look again")]
        }
    })
}

/// Checks every history in a folder: through SQLite if the archive is intact, else page by page.
pub(super) async fn folder(settings: &Settings, archive: Option<Health>) -> Vec<Check> {
    let advice = settings.command("doctor --salvage NEWDIR");
    if archive == Some(Health::Ok)
        && let Ok(history) = store::peek(settings)
        && let Ok(audit) = audit(&history).await
    {
        return audited(Ok(audit), &advice);
    }
    let data = settings.data.clone();
    if !data.exists() {
        return Vec::new();
    }
    match tokio::task::spawn_blocking(move || survey(&data)).await {
        Ok(Ok(surveyed)) => surveyed_checks(&surveyed, &advice),
        Ok(Err(error)) => vec![Check::failed("histories", error, advice)],
        Err(error) => vec![Check::failed("histories", error, advice)],
    }
}

fn survey(data: &Path) -> Result<Surveyed, StoreError> {
    switchyard_host::embedded::survey(data)
}

async fn audit(history: &History) -> Result<Audit, switchyard_runtime::EngineError> {
    let mut said = Instant::now();
    let progress = |audit: &Audit| {
        if said.elapsed() >= Duration::from_secs(1) {
            said = Instant::now();
            output::tell(&format!("{} runs, {} events so far", audit.runs, audit.events));
        }
    };
    history.audit(progress).await
}

fn audited(audit: Result<Audit, switchyard_runtime::EngineError>, advice: &str) -> Vec<Check> {
    let audit = match audit {
        Ok(audit) => audit,
        Err(error) => return vec![Check::failed("histories", error, advice)],
    };
    let Audit { runs, events, payloads, faults } = audit;
    let seen = format!("{runs} runs, {events} events, {payloads} payloads");
    if faults.is_empty() {
        return vec![Check::ok("histories", format!("{seen}: all whole"))];
    }
    let mut damaged: Vec<_> = faults.iter().map(|(run, _)| *run).collect();
    damaged.dedup();
    let found = format!("{seen}; {} runs are damaged", damaged.len());
    let named = faults.iter().take(NAMED_MAX).map(|(run, what)| named(&run.to_string(), what));
    std::iter::once(Check::failed("histories", found, advice)).chain(named).collect()
}

fn surveyed_checks(surveyed: &Surveyed, advice: &str) -> Vec<Check> {
    let Surveyed { whole, cut, left_out } = surveyed;
    let found = format!(
        "{whole} histories are whole, {} would be cut, {} would be left out",
        cut.len(),
        left_out.len()
    );
    let named = cut.iter().chain(left_out).take(NAMED_MAX);
    let named = named.map(|RunFault { run, what, events }| named_with(run, what, *events));
    std::iter::once(Check::failed("histories", found, advice)).chain(named).collect()
}

fn named(run: &str, what: &str) -> Check {
    Check { name: "run", health: Health::Failed, found: format!("{run}: {what}"), advice: None }
}

fn named_with(run: &str, what: &str, events: usize) -> Check {
    named(run, &format!("{what}; {events} events before that"))
}

fn words(failure: &Failure) -> String {
    failure.problems().into_iter().map(|(_, problem)| problem.message).collect::<Vec<_>>().join("; ")
}
