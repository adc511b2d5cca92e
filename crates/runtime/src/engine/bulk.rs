//! Bulk jobs: one action on every run that matches a filter, a page at a time.

use std::sync::Arc;

use switchyard_api::{BulkPreview, BulkView};
use switchyard_core::{Hash, OperationId, RunId};
use switchyard_store::{
    BulkAction, BulkJob, BulkOutcome, BulkProgress, BulkResult, BulkStatus, Mutation, RunFilter, RunOrder,
    RunRecord, StoreError,
};

use super::{Engine, EngineError, Fork, History};
use crate::Principal;

/// How many runs are handled before progress is recorded.
const PAGE: usize = 50;

/// How many runs a dry run shows.
const SAMPLE: usize = 10;

impl History {
    /// A job and its progress.
    pub async fn bulk_job(&self, id: &str) -> Result<BulkView, EngineError> {
        let job = self.archive.bulk_job(id).await?;
        let job = job.ok_or_else(|| StoreError::unknown("bulk job", id))?;
        let counts = self.archive.bulk_counts(id).await?;
        Ok(BulkView { job, counts })
    }

    /// Bulk jobs with their progress, newest first.
    pub async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkView>, EngineError> {
        let mut views = Vec::new();
        for job in self.archive.bulk_jobs(limit).await? {
            let counts = self.archive.bulk_counts(&job.id).await?;
            views.push(BulkView { job, counts });
        }
        Ok(views)
    }

    /// The results of a job, ordered by run, after this run.
    pub async fn bulk_results(
        &self,
        id: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<BulkResult>, EngineError> {
        Ok(self.archive.bulk_results(id, after, limit).await?)
    }

    /// A preview of a job: how many runs match, and a few of them.
    pub async fn bulk_preview(&self, filter: &RunFilter) -> Result<BulkPreview, EngineError> {
        check(filter)?;
        let filter = RunFilter { limit: SAMPLE, cursor: None, ..filter.clone() };
        let count = self.count_runs(&filter, false).await?.into();
        Ok(BulkPreview {
            dry_run: true,
            filter: filter.to_string(),
            count,
            sample: self.runs(&filter).await?.items,
        })
    }
}

impl Engine {
    /// Starts a job on the runs that match the filter now. A duty executes it, also after a restart.
    pub async fn start_bulk(
        &self,
        by: &Principal,
        operation: &OperationId,
        action: BulkAction,
        filter: &RunFilter,
    ) -> Result<BulkView, EngineError> {
        check(filter)?;
        let request = self.asks(by, operation, "start_bulk", &(&action, filter.to_string()))?;
        let now = self.clock.now();
        let (action, mut filter) = (&action, filter.clone());
        filter.order = RunOrder::Oldest;
        // The job does not touch runs that are created later, such as its own forks.
        filter.created.until = Some(filter.created.until.map_or(now, |until| until.min(now)));
        let filter: Arc<str> = filter.to_string().into();
        let filter = &filter;
        let outcome = self.mutate(&request, || async move {
            Ok(Mutation::StartBulk(Box::new(BulkJob {
                id: job_id(operation),
                action: action.clone(),
                filter: filter.clone(),
                by: by.name().clone(),
                created_at: now,
                status: BulkStatus::Running,
                ended_at: None,
                cursor: None,
            })))
        });
        let job = outcome.await?.bulk()?;
        self.history.bulk_job(&job.id).await
    }

    /// Stops a job after its current page. Completed actions are not undone.
    pub async fn stop_bulk(
        &self,
        by: &Principal,
        operation: &OperationId,
        id: &str,
    ) -> Result<BulkView, EngineError> {
        let request = self.asks(by, operation, "stop_bulk", &id)?;
        let at = self.clock.now();
        let stop = || async { Ok(Mutation::StopBulk { id: id.to_owned(), at }) };
        self.mutate(&request, stop).await?.changed()?;
        self.history.bulk_job(id).await
    }

    /// One pass of the bulk duty: handles a page of every open job. Returns whether there is more. Any number of
    /// processes may call it at once: an action takes effect once on a run.
    pub async fn work_bulk(&self) -> Result<bool, EngineError> {
        let mut more = false;
        for job in self.archive.open_bulk_jobs().await? {
            more |= self.work_page(&job).await?;
        }
        Ok(more)
    }

    async fn work_page(&self, job: &BulkJob) -> Result<bool, EngineError> {
        let filter = RunFilter::parse(&job.filter, job.created_at)
            .map_err(|bad| StoreError::Corrupt(format!("the filter of {}: {bad}", job.id)))?;
        let filter = RunFilter { cursor: job.cursor, limit: PAGE, ..filter };
        let page = self.archive.runs(&filter).await?;
        let (mut results, mut outage) = (Vec::new(), None);
        for record in &page.items {
            match self.act_on(job, record).await {
                Ok(result) => results.push(result),
                // The next pass handles the rest of the page.
                Err(error) => {
                    outage = Some(error);
                    break;
                }
            }
        }
        let is_done = outage.is_none() && page.next.is_none();
        let progress = BulkProgress {
            id: job.id.clone(),
            cursor: results.last().map(|result| result.run_id),
            ended_at: is_done.then(|| self.clock.now()),
            results,
        };
        self.archive.record_bulk(progress).await?;
        outage.map_or(Ok(!is_done), Err)
    }

    /// Applies the action of a job to a run. Fails only if it must be tried again: a store does not answer, or the
    /// outcome is unknown.
    async fn act_on(&self, job: &BulkJob, record: &RunRecord) -> Result<BulkResult, EngineError> {
        let run_id = record.run_id;
        let (outcome, detail) = match self.carry_out(job, record).await {
            Ok(detail) => (BulkOutcome::Done, detail),
            Err(EngineError::Store(error)) if error.is_outage() => return Err(error.into()),
            Err(error @ EngineError::OutcomeUnknown { .. }) => return Err(error),
            Err(
                error @ (EngineError::Refused(_) | EngineError::UnknownRun(_) | EngineError::BadRequest(_)),
            ) => (BulkOutcome::Skipped, Some(error.to_string().into())),
            Err(error) => (BulkOutcome::Failed, Some(error.to_string().into())),
        };
        Ok(BulkResult { run_id, outcome, detail })
    }

    async fn carry_out(&self, job: &BulkJob, record: &RunRecord) -> Result<Option<Arc<str>>, EngineError> {
        let (run, by) = (record.run_id, Principal::local(job.by.clone()));
        let id = item_id(job, run)?;
        match &job.action {
            BulkAction::Cancel { reason, compensate, now } => {
                self.cancel(&by, run, &id, reason, *compensate, *now).await?;
            }
            BulkAction::Pause => self.pause(&by, run, &id).await?,
            BulkAction::Resume => self.resume(&by, run, &id).await?,
            BulkAction::Retry => self.retry(&by, run, &id).await?,
            BulkAction::Fork { from } => {
                let failed_at = record.error.as_ref().and_then(|error| error.node.clone());
                let from = from.clone().or(failed_at).ok_or_else(|| {
                    EngineError::BadRequest(format!("{run} failed at no node: say which to fork from"))
                })?;
                let fork = Fork { run, operation: id, from, input: None, edits: Vec::new() };
                return Ok(Some(self.fork(&by, fork).await?.run.to_string().into()));
            }
            BulkAction::Delete { reason } => drop(self.delete_run(&by, run, &id, reason).await?),
        }
        Ok(None)
    }
}

/// Refuses a filter without conditions, because a job on every run is most likely a mistake.
fn check(filter: &RunFilter) -> Result<(), EngineError> {
    filter.check().map_err(|bad| EngineError::BadRequest(bad.to_string()))?;
    let narrowing = |(field, _): &(&str, String)| !matches!(*field, "order" | "children");
    match filter.conditions().iter().any(narrowing) {
        true => Ok(()),
        false => Err(EngineError::BadRequest("a bulk job needs a filter, such as `status=failed`".into())),
    }
}

/// The id of a job, the same for every repetition of its request.
fn job_id(operation: &OperationId) -> Arc<str> {
    format!("bulk_{}", &Hash::of(operation.as_str().as_bytes()).hex()[..16]).into()
}

/// The operation id of a job's action on a run, the same in every process and for every try.
fn item_id(job: &BulkJob, run: RunId) -> Result<OperationId, EngineError> {
    let id = OperationId::new(format!("{}_{run}", job.id));
    Ok(id.map_err(|error| StoreError::Corrupt(format!("the id of {}: {error}", job.id)))?)
}
