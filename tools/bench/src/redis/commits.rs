//! Plain commits in the archive's Postgres, made between the decisions that they are compared with.

use std::time::{Duration, Instant};

use bytes::Bytes;
use switchyard_archive_postgres::{PostgresCas, Target};
use switchyard_store::Cas;

/// Measures commits of a single row on a persistent connection.
pub(crate) struct Commits {
    table: PostgresCas,
    pub(crate) times: Vec<Duration>,
}

impl Commits {
    pub(crate) async fn at(target: &Target) -> anyhow::Result<Self> {
        Ok(Self { table: PostgresCas::open(target.clone()).await?, times: Vec::new() })
    }

    /// Makes one commit. An existing payload is renewed: one statement, one commit.
    pub(crate) async fn make_one(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        self.table.put(Bytes::from_static(b"commit")).await?;
        self.times.push(begun.elapsed());
        Ok(())
    }
}
