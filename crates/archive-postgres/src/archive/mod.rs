//! The archive in Postgres: one task appends, a pool of connections does everything else.
//!
//! - `journal`, `run_index`, `approvals`, `dead_letters`, `definitions`, `operations`, `registry`, `schedules`,
//!   `access`, `result_cache`, `retention`, `payload_holders`: a capability each, with its SQL
//! - `writer`: the task; all waiting appends are one transaction and one commit
//! - `session`: its connection and statements
//! - `group`: which calls fit what is stored, and what they change
//! - `batch`: the changes to rows that follow from the events of a group, merged

mod access;
mod approvals;
mod batch;
mod bulk;
mod dead_letters;
mod definitions;
mod deletion;
mod group;
mod journal;
mod operations;
mod payload_holders;
mod registry;
mod result_cache;
mod retention;
mod rows;
mod run_index;
mod run_search;
mod schedules;
mod session;
mod wheres;
mod writer;

use std::time::Duration;

use switchyard_store::StoreError;

use crate::pool::{ANSWER_MAX, Pool};
use crate::{Target, migrations};
use writer::Writer;

/// A handle on the archive. What was handed over before the last clone is dropped is still written, as long as the
/// runtime that opened it goes on.
#[derive(Debug, Clone)]
pub struct PostgresArchive {
    pool: Pool,
    writer: Writer,
}

/// How to use an archive, for those who need to deviate.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections for everything but appends, which have one of their own.
    pub connections: usize,
    /// How long an append looks for a lost server before it fails.
    pub retry_for: Duration,
    /// How long a statement other than an append may take. Statements that go through whole tables have longer.
    pub answer_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections: 8, retry_for: Duration::from_secs(5), answer_max: ANSWER_MAX }
    }
}

impl PostgresArchive {
    /// Opens what [`migrate`](crate::migrate) has made.
    pub async fn open(target: Target) -> Result<Self, StoreError> {
        Self::open_custom(target, Options::default()).await
    }

    /// The same with options.
    pub async fn open_custom(target: Target, options: Options) -> Result<Self, StoreError> {
        migrations::check_current(&target).await?;
        let pool = Pool::new(target.clone(), options.connections, options.answer_max)?;
        Ok(Self { pool, writer: Writer::start(target, options.retry_for) })
    }
}
