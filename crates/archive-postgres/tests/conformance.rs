//! Runs the conformance suites of archives and of the CAS against Postgres.

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_archive_postgres::{PostgresArchive, PostgresCas, Target, migrate};
use switchyard_conformance::archive::{Backend, CasBackend};
use switchyard_conformance::{archive_tests, cas_tests};
use switchyard_store::{Archive, Cas};
use switchyard_test_servers::postgres;

struct InPostgres;

async fn fresh() -> Target {
    let server: Target = postgres::shared().url().parse().unwrap();
    let target = server.with_schema(&postgres::fresh_schema()).unwrap();
    migrate(&target).await.unwrap();
    target
}

#[async_trait]
impl Backend for InPostgres {
    type Location = Target;

    async fn location(&self) -> Target {
        fresh().await
    }

    async fn open(&self, location: &Target) -> Arc<dyn Archive> {
        Arc::new(PostgresArchive::open(location.clone()).await.unwrap())
    }
}

#[async_trait]
impl CasBackend for InPostgres {
    type Location = Target;

    async fn location(&self) -> Target {
        fresh().await
    }

    async fn open(&self, location: &Target) -> Arc<dyn Cas> {
        Arc::new(PostgresCas::open(location.clone()).await.unwrap())
    }
}

archive_tests!(InPostgres);
cas_tests!(InPostgres);
