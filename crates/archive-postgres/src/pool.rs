//! A pool of connections for queries and small changes. Appends have a connection of their own.

use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool as Connections, RecyclingMethod, Runtime, Timeouts,
};
use switchyard_store::StoreError;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use crate::Target;
use crate::error::{PostgresFailure, cannot_read, cannot_write, lost_while_writing, no_connection, trouble};

pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// How long a caller waits for a connection.
const WAIT: Duration = Duration::from_secs(5);

/// The time limit of a statement. A server that is paused, or that the network no longer reaches, keeps its
/// connections open and answers nothing: without a limit a request would wait for minutes.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The time limit of a statement that carries megabytes: a payload, a page of events.
pub(crate) const LARGE_ANSWER_MAX: Duration = Duration::from_secs(30);

/// The time limit of a statement whose duration grows with the archive. Only background duties, starts and purges wait
/// for these.
pub(crate) const BULK_ANSWER_MAX: Duration = Duration::from_secs(600);

#[derive(Clone)]
pub(crate) struct Pool {
    target: Target,
    connections: Connections,
    answer_max: Duration,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(target: Target, size: usize, answer_max: Duration) -> Result<Self, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(target.config.clone(), target.connector()?, recycling);
        let wait = Some(WAIT.min(answer_max));
        let timeouts = Timeouts { wait, create: wait, recycle: wait };
        let connections = Connections::builder(manager)
            .max_size(size)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| StoreError::unavailable(format!("cannot prepare connections to {target}: {e}")))?;
        Ok(Self { target, connections, answer_max })
    }

    /// The same pool with another time limit.
    pub(crate) fn within(&self, answer_max: Duration) -> Self {
        Self { answer_max, ..self.clone() }
    }

    pub(crate) fn answer_max(&self) -> Duration {
        self.answer_max
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) async fn take(&self) -> Result<Object, StoreError> {
        self.connections.get().await.map_err(|e| no_connection(&self.target, &e))
    }

    /// Takes a connection and checks that it was not lost while it was idle.
    pub(crate) async fn take_answering(&self) -> Result<Object, StoreError> {
        let connection = self.take().await?;
        match timeout(self.answer_max, connection.batch_execute("")).await {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(_)) => self.take().await,
            Err(_) => {
                discard(connection);
                Err(StoreError::Unavailable(self.late()))
            }
        }
    }

    /// The message about a statement that reached the time limit.
    pub(crate) fn late(&self) -> String {
        format!("{} did not answer within {:?}", self.target, self.answer_max)
    }

    /// Runs a query, a second time if the connection was lost.
    pub(crate) async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, StoreError> {
        let rows = match self.ask(sql, params).await {
            Err(Problem::Asking(e)) if trouble(&e) == PostgresFailure::Lost => self.ask(sql, params).await,
            answer => answer,
        };
        rows.map_err(|problem| problem.said(|| self.late(), |e| cannot_read(&self.target, e)))
    }

    pub(crate) async fn row(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, params).await?.into_iter().next())
    }

    async fn ask(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Problem> {
        let (connection, statement) = self.prepare(sql).await?;
        let asked = timeout(self.answer_max, connection.query(&statement, params)).await;
        in_time(asked, connection)?.map_err(Problem::Asking)
    }

    /// Makes a change in one statement. Returns the number of affected rows.
    pub(crate) async fn change(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let (connection, statement) = self
            .prepare(sql)
            .await
            .map_err(|problem| problem.said(|| self.late(), |e| cannot_write(&self.target, e)))?;
        let changed = timeout(self.answer_max, connection.execute(&statement, params)).await;
        match in_time(changed, connection) {
            Ok(changed) => changed.map_err(|e| lost_while_writing(&self.target, &e)),
            // The server may still execute the statement.
            Err(_) => Err(StoreError::OutcomeUnknown(self.late())),
        }
    }

    async fn prepare(&self, sql: &str) -> Result<(Object, Statement), Problem> {
        match self.prepare_once(sql).await {
            // The connection was lost while it was idle, and nothing has been executed yet.
            Err(Problem::Preparing(e)) if trouble(&e) == PostgresFailure::Lost => {
                self.prepare_once(sql).await
            }
            prepared => prepared,
        }
    }

    async fn prepare_once(&self, sql: &str) -> Result<(Object, Statement), Problem> {
        let connection = self.take().await.map_err(Problem::Store)?;
        let prepared = timeout(self.answer_max, connection.prepare_cached(sql)).await;
        match prepared {
            Ok(Ok(statement)) => Ok((connection, statement)),
            Ok(Err(error)) => Err(Problem::Preparing(error)),
            Err(_) => {
                discard(connection);
                Err(Problem::Late)
            }
        }
    }
}

/// Closes a connection that has an unanswered statement: the next statement on it would wait behind that one.
pub(crate) fn discard(connection: Object) {
    drop(Object::take(connection));
}

fn in_time<T>(answer: Result<T, Elapsed>, connection: Object) -> Result<T, Problem> {
    answer.map_err(|_| {
        discard(connection);
        Problem::Late
    })
}

enum Problem {
    Store(StoreError),
    Preparing(Error),
    /// The statement was sent; whether it was executed is not known.
    Asking(Error),
    /// The server did not answer within the time limit.
    Late,
}

impl Problem {
    fn said(self, late: impl FnOnce() -> String, sentence: impl FnOnce(&Error) -> StoreError) -> StoreError {
        match self {
            Self::Store(e) => e,
            Self::Preparing(e) | Self::Asking(e) => sentence(&e),
            Self::Late => StoreError::Unavailable(late()),
        }
    }
}
