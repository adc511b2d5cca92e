//! An operation on checkpoints, and its result.

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use switchyard_checkpoints::keys::Keyspace;
use switchyard_checkpoints::raw_connection::Reply;
use switchyard_checkpoints::{
    Checkpoints, DeltaHistory, Error, Get, Page, Put, PutWrites, Seek, Stats, Stored, Strategy, ThreadInfo,
    Ttl,
};

use crate::convert::{text, typed, version};
use crate::errors::to_python;

/// Done once: by `Core.wait` or by `Core.start`.
#[pyclass(frozen, module = "switchyard._core")]
pub(crate) struct Op(Mutex<Option<Task>>);

pub(crate) enum Task {
    Check,
    Put(Box<Put>),
    PutWrites(PutWrites),
    Get(Get),
    Page(Seek),
    DeleteThread(String),
    DeleteForRuns(Vec<String>),
    CopyThread(String, String),
    Prune(Vec<String>, Strategy),
    DeltaHistory { thread: String, ns: String, id: Option<String>, channels: Vec<String> },
    SetTtl(String, Ttl),
    Threads,
    ThreadInfo(String),
    Stats,
}

pub(crate) enum Outcome {
    Done,
    Whether(bool),
    Count(u64),
    Stored(Option<Box<Stored>>),
    Page(Page),
    History(Vec<DeltaHistory>),
    Threads(Vec<(String, i64)>),
    ThreadInfo(Option<ThreadInfo>),
    Stats(Box<Stats>),
}

impl Op {
    fn of(task: Task) -> Self {
        Self(Mutex::new(Some(task)))
    }

    pub(crate) fn take(&self) -> PyResult<Task> {
        let taken = self.0.lock().take();
        taken.ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("this operation was done already"))
    }
}

#[pymethods]
impl Op {
    #[staticmethod]
    fn check() -> Self {
        Self::of(Task::Check)
    }

    /// `values` are `(channel, version, (format, bytes))`, `emptied` are `(channel, version)`.
    #[staticmethod]
    #[expect(
        clippy::too_many_arguments,
        reason = "all that there is to know about a checkpoint, from one caller"
    )]
    fn put(
        thread: &Bound<'_, PyString>,
        ns: &Bound<'_, PyString>,
        id: &Bound<'_, PyString>,
        parent: Option<&Bound<'_, PyString>>,
        run: Option<&Bound<'_, PyString>>,
        delta: Vec<String>,
        versions: &Bound<'_, PyDict>,
        checkpoint: &Bound<'_, PyTuple>,
        metadata: &Bound<'_, PyTuple>,
        values: &Bound<'_, PyList>,
        emptied: &Bound<'_, PyDict>,
        ttl_ms: u64,
    ) -> PyResult<Self> {
        let mut put = Put::new(text(thread)?, text(ns)?, text(id)?);
        put.parent = parent.map(|parent| text(parent).map(ToOwned::to_owned)).transpose()?;
        put.run = run.map(|run| text(run).map(ToOwned::to_owned)).transpose()?;
        (put.delta, put.ttl_ms) = (delta, ttl_ms);
        typed(checkpoint, |format, bytes| put.checkpoint(format, bytes))?;
        typed(metadata, |format, bytes| put.metadata(format, bytes))?;
        for (channel, number) in versions {
            if emptied.is_empty() || !emptied.contains(&channel)? {
                put.refer(text(channel.cast::<PyString>()?)?, &version(&number)?);
            }
        }
        for value in values {
            let value = value.cast::<PyTuple>()?;
            let (channel, number) = (value.get_item(0)?, value.get_item(1)?);
            let (channel, number) = (text(channel.cast::<PyString>()?)?, version(&number)?);
            typed(value.get_item(2)?.cast::<PyTuple>()?, |format, bytes| {
                put.value(channel, &number, format, bytes);
            })?;
        }
        for (channel, number) in emptied {
            put.empty(text(channel.cast::<PyString>()?)?, &version(&number)?);
        }
        Ok(Self::of(Task::Put(Box::new(put))))
    }

    /// `writes` are `(channel, (format, bytes))`.
    #[staticmethod]
    fn put_writes(
        thread: &Bound<'_, PyString>,
        ns: &Bound<'_, PyString>,
        checkpoint: &Bound<'_, PyString>,
        task: &Bound<'_, PyString>,
        path: &Bound<'_, PyString>,
        writes: &Bound<'_, PyList>,
        ttl_ms: u64,
    ) -> PyResult<Self> {
        let mut put = PutWrites::new(text(thread)?, text(ns)?, text(checkpoint)?, text(task)?, text(path)?);
        put.ttl_ms = ttl_ms;
        for write in writes {
            let write = write.cast::<PyTuple>()?;
            let channel = write.get_item(0)?;
            let channel = text(channel.cast::<PyString>()?)?;
            typed(write.get_item(1)?.cast::<PyTuple>()?, |format, bytes| put.write(channel, format, bytes))?;
        }
        Ok(Self::of(Task::PutWrites(put)))
    }

    #[staticmethod]
    fn get(thread: String, ns: String, id: Option<String>, refresh_ms: Option<u64>) -> Self {
        Self::of(Task::Get(Get { thread, ns, id, refresh_ms }))
    }

    #[staticmethod]
    fn page(
        thread: String,
        ns: Option<String>,
        id: Option<String>,
        before: Option<String>,
        after_seq: Option<u64>,
        count: usize,
        heads_only: bool,
    ) -> Self {
        Self::of(Task::Page(Seek { thread, ns, id, before, after_seq, count, heads_only }))
    }

    #[staticmethod]
    fn delete_thread(thread: String) -> Self {
        Self::of(Task::DeleteThread(thread))
    }

    #[staticmethod]
    fn delete_for_runs(runs: Vec<String>) -> Self {
        Self::of(Task::DeleteForRuns(runs))
    }

    #[staticmethod]
    fn copy_thread(source: String, target: String) -> Self {
        Self::of(Task::CopyThread(source, target))
    }

    #[staticmethod]
    fn prune(py: Python<'_>, threads: Vec<String>, strategy: &str) -> PyResult<Self> {
        let strategy = strategy.parse().map_err(|error| to_python(py, error))?;
        Ok(Self::of(Task::Prune(threads, strategy)))
    }

    #[staticmethod]
    fn delta_history(thread: String, ns: String, id: Option<String>, channels: Vec<String>) -> Self {
        Self::of(Task::DeltaHistory { thread, ns, id, channels })
    }

    /// `own_ms` is the thread's own, 0 for ever; without it, the saver's holds again.
    #[staticmethod]
    fn set_ttl(thread: String, own_ms: Option<u64>, saver_ms: u64) -> Self {
        let ttl = match own_ms {
            None => Ttl::OfSaver { ttl_ms: saver_ms },
            Some(0) => Ttl::Forever,
            Some(ttl_ms) => Ttl::Own { ttl_ms },
        };
        Self::of(Task::SetTtl(thread, ttl))
    }

    #[staticmethod]
    fn threads() -> Self {
        Self::of(Task::Threads)
    }

    #[staticmethod]
    fn thread_info(thread: String) -> Self {
        Self::of(Task::ThreadInfo(thread))
    }

    #[staticmethod]
    fn stats() -> Self {
        Self::of(Task::Stats)
    }
}

impl Task {
    /// Whether the task is one call, which can be sent over a
    /// [`RawConnection`](switchyard_checkpoints::raw_connection::RawConnection).
    pub(crate) fn is_one_call(&self) -> bool {
        matches!(self, Self::Put(_) | Self::PutWrites(_) | Self::Get(_))
    }

    /// Appends the encoded call to a buffer.
    pub(crate) fn request(&self, space: &Keyspace, unsent: &mut Vec<u8>) {
        match self {
            Self::Put(put) => put.request(space, unsent),
            Self::PutWrites(put) => put.request(space, unsent),
            Self::Get(get) => get.request(space, unsent),
            _ => {}
        }
    }

    /// Decodes the answer to the request into a result.
    pub(crate) fn answered(&self, reply: Reply) -> Result<Outcome, Error> {
        match self {
            Self::Put(put) => put.answered(reply).map(|_| Outcome::Done),
            Self::Get(get) => Ok(Outcome::Stored(get.answered(reply)?.map(Box::new))),
            _ => Ok(Outcome::Done),
        }
    }

    pub(crate) async fn run(self, store: &Checkpoints) -> Result<Outcome, Error> {
        Ok(match self {
            Self::Check => store.check().await.map(|()| Outcome::Done)?,
            Self::Put(put) => store.put(&put).await.map(|_| Outcome::Done)?,
            Self::PutWrites(put) => store.put_writes(&put).await.map(|()| Outcome::Done)?,
            Self::Get(get) => Outcome::Stored(store.get(&get).await?.map(Box::new)),
            Self::Page(seek) => Outcome::Page(store.page(&seek).await?),
            Self::DeleteThread(thread) => Outcome::Whether(store.delete_thread(&thread).await?),
            Self::DeleteForRuns(runs) => Outcome::Count(store.delete_for_runs(&runs).await?),
            Self::CopyThread(source, target) => Outcome::Whether(store.copy_thread(&source, &target).await?),
            Self::Prune(threads, strategy) => Outcome::Count(store.prune(&threads, strategy).await?),
            Self::DeltaHistory { thread, ns, id, channels } => {
                Outcome::History(store.delta_history(&thread, &ns, id.as_deref(), &channels).await?)
            }
            Self::SetTtl(thread, ttl) => Outcome::Whether(store.set_ttl(&thread, ttl).await?),
            Self::Threads => Outcome::Threads(store.threads_by_time().await?),
            Self::ThreadInfo(thread) => Outcome::ThreadInfo(store.thread_info(&thread).await?),
            Self::Stats => Outcome::Stats(Box::new(store.stats().await?)),
        })
    }
}
