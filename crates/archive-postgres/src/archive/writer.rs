//! The appending task. It writes all waiting appends in one transaction and one commit, then acknowledges them all;
//! appends that arrive meanwhile are the next transaction. If the connection to Postgres is lost, it reconnects.

use std::future::Future;
use std::time::Duration;

use switchyard_core::run::{Event, EventKind};
use switchyard_store::{MARK_EVERY, StoreError, event_checksum};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::group::{Group, Stored, Written};
use super::session::{Failure, Session};
use crate::Target;
use crate::error::{PostgresFailure, cannot_write, may_be_committed, sentence, trouble};

/// Size at which a transaction takes no more jobs, in events and in bytes of their bodies: its first job should not
/// wait too long, and a message has a limit.
const GROUP_EVENTS_MAX: usize = 8_000;
const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Pause between two attempts to reconnect.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A caller that has waited longer than the retry time still gets one attempt of this length.
const LAST_ATTEMPT: Duration = Duration::from_secs(1);

/// The first of two colliding appends wins; a group that collides this often in a row is refused.
const COLLISIONS_MAX: u32 = 10;

struct Job {
    call: Vec<Written>,
    since: Instant,
    ack: oneshot::Sender<Result<(), StoreError>>,
}

#[derive(Debug, Clone)]
pub(super) struct Writer {
    target: Target,
    jobs: mpsc::UnboundedSender<Job>,
}

impl Writer {
    /// Starts the task. It ends when every handle is dropped and all submitted appends are written.
    pub(super) fn start(target: Target, retry_for: Duration) -> Self {
        let (jobs, inbox) = mpsc::unbounded_channel();
        let writer = WriterLoop {
            target: target.clone(),
            retry_for,
            inbox,
            session: None,
            commit: Commit::NotSent,
            marked: None,
        };
        tokio::spawn(writer.work());
        Self { target, jobs }
    }

    /// Queues an append in the order of the calls; the future resolves when it is durable.
    pub(super) fn hand_over(
        &self,
        events: Vec<Event>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        let (ack, answer) = oneshot::channel();
        let sent = written(events).map(|call| {
            // If the task is gone, `ack` was dropped, and the error below reports it.
            drop(self.jobs.send(Job { call, since: Instant::now(), ack }));
        });
        let target = self.target.clone();
        async move {
            sent?;
            let gone = || StoreError::outcome_unknown(format!("the writer to {target} has stopped"));
            answer.await.unwrap_or_else(|_| Err(gone()))
        }
    }
}

fn written(events: Vec<Event>) -> Result<Vec<Written>, StoreError> {
    let write = |event: Event| match serde_json::to_string(&event.kind) {
        Ok(body) => {
            let checksum = event_checksum(event.run, event.seq, event.at, body.as_bytes());
            Ok(Written { event, body, checksum })
        }
        Err(e) => Err(StoreError::Corrupt(format!("an event cannot be written as JSON: {e}"))),
    };
    events.into_iter().map(write).collect()
}

struct WriterLoop {
    target: Target,
    retry_for: Duration,
    inbox: mpsc::UnboundedReceiver<Job>,
    /// `None` until the first append, and after the connection was lost.
    session: Option<Session>,
    /// The state of the COMMIT of the jobs that are being written.
    commit: Commit,
    /// When the archive's position was last written.
    marked: Option<Instant>,
}

/// Whether the COMMIT of a group was sent, over all attempts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    NotSent,
    /// Sent, and not answered.
    Sent,
}

impl WriterLoop {
    async fn work(mut self) {
        while let Some(first) = self.inbox.recv().await {
            let jobs = self.gather(first);
            self.settle(jobs).await;
        }
    }

    /// All jobs that wait behind `first`, up to the size of a group.
    fn gather(&mut self, first: Job) -> Vec<Job> {
        let bytes = |job: &Job| job.call.iter().map(|written| written.body.len()).sum::<usize>();
        let (mut events, mut size) = (first.call.len(), bytes(&first));
        let mut jobs = vec![first];
        while events < GROUP_EVENTS_MAX
            && size < GROUP_BYTES_MAX
            && let Ok(job) = self.inbox.try_recv()
        {
            events += job.call.len();
            size += bytes(&job);
            jobs.push(job);
        }
        jobs
    }

    /// Writes jobs together; if the server rejects the group, one by one.
    async fn settle(&mut self, jobs: Vec<Job>) {
        match self.write(&jobs).await {
            Ok(verdicts) => {
                for (job, verdict) in jobs.into_iter().zip(verdicts) {
                    // The caller may be gone; the write stays.
                    drop(job.ack.send(verdict));
                }
            }
            Err(StoreError::Corrupt(_)) if jobs.len() > 1 => {
                for job in jobs {
                    Box::pin(self.settle(vec![job])).await;
                }
            }
            Err(why) => {
                tracing::error!(error = %why, calls = jobs.len(), "events could not be archived");
                for job in jobs {
                    drop(job.ack.send(Err(why.clone())));
                }
            }
        }
    }

    /// Writes jobs and returns the result of each call once the group is committed. Retries for `retry_for`: if a
    /// group was committed but the answer was lost, the next attempt finds its events stored.
    async fn write(&mut self, jobs: &[Job]) -> Result<Vec<Result<(), StoreError>>, StoreError> {
        self.commit = Commit::NotSent;
        self.write_until_late(jobs).await.map_err(|error| match (error, self.commit) {
            (StoreError::Unavailable(why), Commit::Sent) => StoreError::OutcomeUnknown(why),
            (error, _) => error,
        })
    }

    async fn write_until_late(&mut self, jobs: &[Job]) -> Result<Vec<Result<(), StoreError>>, StoreError> {
        let now = Instant::now();
        let since = jobs.iter().map(|job| job.since).min().unwrap_or(now);
        let deadline = (since + self.retry_for).max(now + LAST_ATTEMPT);
        let (mut collisions, mut told) = (0, false);
        loop {
            let failure = match timeout_at(deadline, self.attempt(jobs)).await {
                Ok(Ok(verdicts)) => return Ok(verdicts),
                Ok(Err(failure)) => failure,
                Err(_) => {
                    self.session = None;
                    let why = format!("{} did not answer in time", self.target);
                    return Err(StoreError::Unavailable(why));
                }
            };
            let error = match failure {
                Failure::Damaged(why) => {
                    self.recover().await;
                    return Err(why);
                }
                Failure::Postgres(error) => error,
            };
            match trouble(&error) {
                PostgresFailure::Collision if collisions < COLLISIONS_MAX => {
                    collisions += 1;
                    self.recover().await;
                }
                PostgresFailure::Lost if Instant::now() + LOOK_AGAIN < deadline => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(error = %sentence(&error), "lost {}, looking for it again", self.target);
                    }
                    self.session = None;
                    sleep(LOOK_AGAIN).await;
                }
                _ => {
                    self.recover().await;
                    return Err(cannot_write(&self.target, &error));
                }
            }
        }
    }

    async fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Result<(), StoreError>>, Failure> {
        let session = match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => self.session.insert(session),
            None => self.session.insert(Session::open(&self.target).await?),
        };
        let events: Vec<&Event> =
            jobs.iter().flat_map(|job| &job.call).map(|written| &written.event).collect();
        if events.is_empty() {
            session.ask_nothing().await?;
            return Ok(jobs.iter().map(|_| Ok(())).collect());
        }
        let stored: Stored = session.begin(&events, &keys(&events)).await?;
        let mut group = Group::new(&stored);
        let verdicts: Vec<_> = jobs.iter().map(|job| group.take(&job.call)).collect();
        let before = std::mem::replace(&mut self.commit, Commit::Sent);
        let due = self.marked.is_none_or(|at| at.elapsed() >= MARK_EVERY);
        session.commit(&group, due).await.inspect_err(|error| {
            // A refusal of this attempt says nothing about an earlier one whose answer was lost.
            if !may_be_committed(error) {
                self.commit = before;
            }
        })?;
        if due && !group.runs.is_empty() {
            self.marked = Some(Instant::now());
        }
        Ok(verdicts)
    }

    /// Rolls back a failed transaction, and keeps the connection if it still answers.
    async fn recover(&mut self) {
        if let Some(session) = self.session.take()
            && timeout_at(Instant::now() + LAST_ATTEMPT, session.roll_back())
                .await
                .is_ok_and(|done| done.is_ok())
        {
            self.session = Some(session);
        }
    }
}

fn keys<'a>(events: &[&'a Event]) -> Vec<&'a str> {
    let key = |event: &&'a Event| match &event.kind {
        EventKind::RunAccepted(accepted) => accepted.idempotency.as_ref().map(|i| -> &str { &i.key }),
        _ => None,
    };
    events.iter().filter_map(key).collect()
}
