//! Connections for questions and small changes. Appends have one of their own.

use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool as Connections, RecyclingMethod, Runtime, Timeouts,
};
use switchyard_store::StoreError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use crate::Target;
use crate::error::{PostgresFailure, cannot_read, cannot_write, lost_while_writing, no_connection, trouble};

pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// How long a caller waits for a connection.
const WAIT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Pool {
    target: Target,
    connections: Connections,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(target: Target, size: usize) -> Result<Self, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(target.config.clone(), target.connector()?, recycling);
        let timeouts = Timeouts { wait: Some(WAIT), create: Some(WAIT), recycle: Some(WAIT) };
        let connections = Connections::builder(manager)
            .max_size(size)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| StoreError::unavailable(format!("cannot prepare connections to {target}: {e}")))?;
        Ok(Self { target, connections })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) async fn take(&self) -> Result<Object, StoreError> {
        self.connections.get().await.map_err(|e| no_connection(&self.target, &e))
    }

    /// A connection that was not lost while it was idle.
    pub(crate) async fn take_answering(&self) -> Result<Object, StoreError> {
        let connection = self.take().await?;
        match connection.batch_execute("").await {
            Ok(()) => Ok(connection),
            Err(_) => self.take().await,
        }
    }

    /// A question.
    pub(crate) async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, StoreError> {
        let rows = match self.ask(sql, params).await {
            Err(Problem::Asking(e)) if trouble(&e) == PostgresFailure::Lost => self.ask(sql, params).await,
            answer => answer,
        };
        rows.map_err(|problem| problem.said(|e| cannot_read(&self.target, e)))
    }

    pub(crate) async fn row(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, params).await?.into_iter().next())
    }

    async fn ask(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Problem> {
        let (connection, statement) = self.prepare(sql).await?;
        connection.query(&statement, params).await.map_err(Problem::Asking)
    }

    /// A change in one statement. Answers how many rows it concerned.
    pub(crate) async fn change(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let (connection, statement) =
            self.prepare(sql).await.map_err(|problem| problem.said(|e| cannot_write(&self.target, e)))?;
        connection.execute(&statement, params).await.map_err(|e| lost_while_writing(&self.target, &e))
    }

    async fn prepare(&self, sql: &str) -> Result<(Object, Statement), Problem> {
        match self.prepare_once(sql).await {
            // It was lost while it was idle, and nothing has been done yet.
            Err(Problem::Preparing(e)) if trouble(&e) == PostgresFailure::Lost => {
                self.prepare_once(sql).await
            }
            prepared => prepared,
        }
    }

    async fn prepare_once(&self, sql: &str) -> Result<(Object, Statement), Problem> {
        let connection = self.take().await.map_err(Problem::Store)?;
        let statement = connection.prepare_cached(sql).await.map_err(Problem::Preparing)?;
        Ok((connection, statement))
    }
}

enum Problem {
    Store(StoreError),
    Preparing(Error),
    /// The statement was sent; whether it was carried out is not known.
    Asking(Error),
}

impl Problem {
    fn said(self, sentence: impl FnOnce(&Error) -> StoreError) -> StoreError {
        match self {
            Self::Store(e) => e,
            Self::Preparing(e) | Self::Asking(e) => sentence(&e),
        }
    }
}
