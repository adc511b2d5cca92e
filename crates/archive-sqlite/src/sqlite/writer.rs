//! The writer thread. All waiting jobs are one transaction and one disk sync, and then all of them are acknowledged;
//! jobs that arrive during the sync are the next transaction.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use rusqlite::Connection;
use switchyard_store::{MutationOutcome, StoreError};
use tokio::sync::oneshot;

use super::error::{cannot_open, sentence};
use super::newest::Newest;
use super::session::Session;
use super::work::{Failure, Performed, Work};
use super::{checkpoint, marker};
use crate::folder::FolderLock;

/// Size at which a transaction takes no more jobs, so that its first job does not wait too long.
const GROUP_EVENTS_MAX: usize = 8_000;

struct Job {
    work: Work,
    ack: oneshot::Sender<Result<Performed, StoreError>>,
}

#[derive(Debug)]
pub(super) struct Writer {
    path: Arc<Path>,
    /// `None` only during drop: closing the channel ends the thread.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        conn: Connection,
        path: Arc<Path>,
        newest: Arc<Newest>,
        lock: Option<Arc<FolderLock>>,
    ) -> Result<Self, StoreError> {
        let (jobs, inbox) = mpsc::channel();
        let writer = WriterLoop { conn, path: path.clone(), inbox, newest, _lock: lock };
        let thread = std::thread::Builder::new()
            .name("archive-writer".to_owned())
            .spawn(move || writer.work())
            .map_err(|e| {
                StoreError::unavailable(format!("cannot start the writer of {}: {e}", path.display()))
            })?;
        Ok(Self { path, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Queues work in the order of the calls; the future resolves when the work is durable.
    pub(super) fn hand_over(
        &self,
        work: Work,
    ) -> impl Future<Output = Result<Performed, StoreError>> + Send + use<> {
        let (ack, answer) = oneshot::channel();
        if let Some(jobs) = &self.jobs {
            // If the thread is gone, `ack` was dropped, and the error below reports it.
            let _ = jobs.send(Job { work, ack });
        }
        let path = self.path.clone();
        async move {
            answer.await.unwrap_or_else(|_| {
                Err(StoreError::unavailable(format!("the writer of {} has stopped", path.display())))
            })
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(path = %self.path.display(), "the archive's writer panicked");
        }
    }
}

/// The state of the thread.
struct WriterLoop {
    conn: Connection,
    path: Arc<Path>,
    inbox: Receiver<Job>,
    /// Updated here, because the caller that registers may be gone.
    newest: Arc<Newest>,
    /// Keeps the folder locked until the last page is written.
    _lock: Option<Arc<FolderLock>>,
}

impl WriterLoop {
    fn work(self) {
        match self.write_groups() {
            Ok(()) => self.leave(),
            Err(why) => self.refuse(&why),
        }
    }

    /// Empties the log into the database file, and leaves the clean-shutdown marker.
    fn leave(self) {
        checkpoint::for_good(&self.conn);
        drop(self.conn);
        if let Err(error) = marker::leave(&self.path) {
            tracing::warn!(%error, "cannot say that the archive was closed in order; it is checked at the next start");
        }
    }

    /// Ends when the channel is closed and empty, or at the first failure.
    fn write_groups(&self) -> Result<(), StoreError> {
        let mut session = Session::open(&self.conn).map_err(|e| cannot_open(&self.path, &e))?;
        while let Ok(first) = self.inbox.recv() {
            let group = self.gather(first);
            match write_group(&mut session, &group) {
                Ok(answers) => self.acknowledge(group, answers),
                Err(Failure::Refused(_)) => self.write_one_by_one(&mut session, group)?,
                Err(Failure::Sqlite(e)) => return Err(self.give_up(&e, &session, group)),
                Err(Failure::Commit(e)) => return Err(self.give_up_committing(&e, group)),
            }
            checkpoint::if_due(&self.conn);
        }
        Ok(())
    }

    /// Writes the jobs separately after one of them contradicts stored data: only its caller gets the error.
    fn write_one_by_one(&self, session: &mut Session<'_>, group: Vec<Job>) -> Result<(), StoreError> {
        let mut left = group.into_iter();
        while let Some(job) = left.next() {
            match write_group(session, std::slice::from_ref(&job)) {
                Ok(answers) => self.acknowledge(vec![job], answers),
                Err(Failure::Refused(why)) => {
                    tracing::warn!(error = %why, "the archive refused what does not fit");
                    refuse_all(vec![job], &why);
                }
                Err(Failure::Sqlite(e)) => {
                    return Err(self.give_up(&e, session, std::iter::once(job).chain(left).collect()));
                }
                Err(Failure::Commit(e)) => {
                    let why = self.give_up_committing(&e, vec![job]);
                    // The remaining jobs were not started.
                    refuse_all(left.collect(), &why.clone().not_applied());
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    fn acknowledge(&self, group: Vec<Job>, answers: Vec<Performed>) {
        for (job, answer) in group.into_iter().zip(answers) {
            if let Performed::Mutated(Ok(MutationOutcome::Workflow(record))) = &answer {
                self.newest.learn(record);
            }
            // The caller may be gone; the write stays.
            let _ = job.ack.send(Ok(answer));
        }
    }

    /// All jobs that wait behind `first`, up to the size of a group.
    fn gather(&self, first: Job) -> Vec<Job> {
        let mut weight = first.work.weight();
        let mut group = vec![first];
        while weight < GROUP_EVENTS_MAX
            && let Ok(job) = self.inbox.try_recv()
        {
            weight = weight.saturating_add(job.work.weight());
            group.push(job);
        }
        group
    }

    /// Refuses all later jobs after a failed write: later events may depend on the lost ones.
    fn refuse(&self, why: &StoreError) {
        let later = StoreError::unavailable(format!("{} takes no more: {why}", self.path.display()));
        while let Ok(job) = self.inbox.recv() {
            let _ = job.ack.send(Err(later.clone()));
        }
    }

    /// Tells all callers of the group that it may have been written: the disk failed during the commit.
    fn give_up_committing(&self, error: &rusqlite::Error, group: Vec<Job>) -> StoreError {
        let path = self.path.display();
        let sentence = sentence(error, &self.path);
        let why = StoreError::outcome_unknown(format!("cannot finish writing to {path}: {sentence}"));
        tracing::error!(error = %why, "the archive takes no more");
        refuse_all(group, &why);
        why
    }

    /// Tells all callers of the group why nothing of it was written.
    fn give_up(&self, error: &rusqlite::Error, session: &Session<'_>, group: Vec<Job>) -> StoreError {
        let why = StoreError::unavailable(format!(
            "cannot write to {}: {}; nothing after event {} was accepted",
            self.path.display(),
            sentence(error, &self.path),
            session.last_no()
        ));
        tracing::error!(error = %why, "the archive takes no more");
        refuse_all(group, &why);
        why
    }
}

fn write_group(session: &mut Session<'_>, group: &[Job]) -> Result<Vec<Performed>, Failure> {
    session.transaction(|session| group.iter().map(|job| session.perform(&job.work)).collect())
}

fn refuse_all(group: Vec<Job>, why: &StoreError) {
    for job in group {
        let _ = job.ack.send(Err(why.clone()));
    }
}
