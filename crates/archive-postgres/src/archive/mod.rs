//! The archive in Postgres: one task appends, a pool of connections does everything else.
//!
//! - `journal`, `run_index`, `approvals`, `dead_letters`, `definitions`, `operations`, `registry`, `schedules`,
//!   `access`, `result_cache`, `retention`, `payload_holders`: one capability each, with its SQL
//! - `writer`: the task; all waiting appends are one transaction and one commit
//! - `session`: its connection and statements
//! - `group`: which calls fit the stored data, and what they change
//! - `batch`: the row changes that follow from the events of a group, merged

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

/// A handle on the archive. Appends submitted before the last clone is dropped are still written, as long as the
/// runtime that opened the archive keeps running.
#[derive(Debug, Clone)]
pub struct PostgresArchive {
    pool: Pool,
    writer: Writer,
}

/// Options for using an archive.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of connections for everything but appends, which have one of their own.
    pub connections: usize,
    /// How long an append tries to reconnect to a lost server before it fails.
    pub retry_for: Duration,
    /// How long a statement other than an append may take. Statements that scan whole tables have a longer limit.
    pub answer_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections: 8, retry_for: Duration::from_secs(5), answer_max: ANSWER_MAX }
    }
}

impl PostgresArchive {
    /// Opens an archive that [`migrate`](crate::migrate) has created.
    pub async fn open(target: Target) -> Result<Self, StoreError> {
        Self::open_custom(target, Options::default()).await
    }

    /// Like [`open`](Self::open), with options.
    pub async fn open_custom(target: Target, options: Options) -> Result<Self, StoreError> {
        migrations::check_current(&target).await?;
        let pool = Pool::new(target.clone(), options.connections, options.answer_max)?;
        Ok(Self { pool, writer: Writer::start(target, options.retry_for) })
    }
}
