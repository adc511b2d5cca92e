//! Runs the conformance suite of hot stores on Redis with an SQLite archive.

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_archive_sqlite::DataFolder;
use switchyard_conformance::hot_store::{Backend, Fixture};
use switchyard_conformance::hot_store_tests;
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::redis;

struct Redis;

#[async_trait]
impl Backend for Redis {
    async fn open(&self) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = DataFolder::open(folder.path()).expect("a data folder");
        let archive = Arc::new(data.archive().expect("an archive"));
        let clock = Fixture::clock();
        let settings = RedisSettings {
            prefix: redis::fresh_prefix(),
            clock: Some(Arc::new(clock.clone())),
            ..RedisSettings::new(redis::shared().url())
        };
        let hot = RedisStore::open(settings, archive.clone()).await.expect("Redis answers");
        Fixture::new(Arc::new(hot), archive, clock, folder)
    }
}

hot_store_tests!(Redis);
