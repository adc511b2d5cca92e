//! Postgres commits and its answer is lost: each change is made once, and no answer claims more than is known.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchyard_archive_postgres::{Options, PostgresArchive, PostgresCas, Target, migrate};
use switchyard_core::OperationId;
use switchyard_core::in_flight::Acceptance;
use switchyard_core::run::Refusal;
use switchyard_lang::Program;
use switchyard_runtime::{Engine, EngineError, Principal, Submission, ids};
use switchyard_store::{RunFilter, RunIndex, SystemClock};
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::proxy::Proxy;
use switchyard_test_servers::{postgres, redis};

/// The text with which clients request a commit and Postgres confirms it.
const COMMIT: &[u8] = b"COMMIT\0";

/// An engine that reaches Postgres through a proxy.
struct Scene {
    engine: Engine,
    proxy: Proxy,
    /// The same archive, not through the proxy.
    archive: PostgresArchive,
}

impl Scene {
    async fn new() -> Self {
        let server = postgres::shared();
        let schema = postgres::fresh_schema();
        let direct: Target = server.url().parse().unwrap();
        let direct = direct.with_schema(&schema).unwrap();
        migrate(&direct).await.unwrap();
        let proxy = Proxy::before(server.port());
        let url = server.url().replace(&server.port().to_string(), &proxy.port().to_string());
        let through: Target = url.parse().unwrap();
        let through = through.with_schema(&schema).unwrap();
        // Shorter than an outage of one second, so that an append gives up during it.
        let options = Options { retry_for: Duration::from_millis(50), ..Options::default() };
        let archive = Arc::new(PostgresArchive::open_custom(through.clone(), options).await.unwrap());
        let cas = Arc::new(PostgresCas::open(through).await.unwrap());
        let mut settings = RedisSettings::new(redis::shared().url());
        settings.prefix = redis::fresh_prefix();
        let hot = Arc::new(RedisStore::open(settings, archive.clone()).await.unwrap());
        let engine = Engine::new(hot, archive, cas, Arc::new(SystemClock));
        Self { engine, proxy, archive: PostgresArchive::open(direct).await.unwrap() }
    }

    async fn runs(&self) -> usize {
        let all = RunFilter { limit: 100, ..RunFilter::default() };
        self.archive.runs(&all).await.unwrap().items.len()
    }
}

fn tester() -> Principal {
    Principal::local("tester")
}

fn program(name: &str) -> Arc<Program> {
    let definition =
        json!({ "name": name, "nodes": { "greet": { "type": "transform", "value": "${{ input }}" } } });
    Arc::new(Program::compile_value(&definition).unwrap())
}

fn submission(input: Value) -> Submission {
    Submission::new(program("hello"), input)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_is_asked_for_again_until_it_is_known_and_is_one_run() {
    let scene = Scene::new().await;
    // The last key cannot be sent as a header, only in the body.
    for key in [None, Some("order 7".to_owned()), Some("Auftrag für Köln".to_owned())] {
        let before = scene.runs().await;
        scene.proxy.lose_answer(COMMIT, COMMIT, 20);
        let submitted = Submission { idempotency_key: key, ..submission(json!(1)) };
        let acceptance = scene.engine.submit(&tester(), submitted.clone()).await.unwrap();
        assert!(scene.proxy.has_lost_it());
        assert_eq!(scene.runs().await, before + 1);
        assert!(scene.archive.run(acceptance.run()).await.unwrap().is_some());
        if submitted.idempotency_key.is_some() {
            let again = scene.engine.submit(&tester(), submitted).await.unwrap();
            assert_eq!(again, Acceptance::Existing(acceptance.run()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_whose_outcome_stays_unknown_is_named_and_can_be_repeated() {
    let scene = Scene::new().await;
    scene.proxy.lose_answer(COMMIT, COMMIT, u32::MAX);
    let unknown = scene.engine.submit(&tester(), submission(json!(1))).await.unwrap_err();
    let EngineError::OutcomeUnknown { operation, .. } = unknown else { panic!("{unknown}") };
    scene.proxy.reopen();
    let repeated =
        |input| Submission { idempotency_key: Some(operation.as_str().to_owned()), ..submission(input) };
    let acceptance = scene.engine.submit(&tester(), repeated(json!(1))).await.unwrap();
    assert!(matches!(acceptance, Acceptance::Existing(_)), "{acceptance:?}");
    assert_eq!(scene.runs().await, 1);
    let other = scene.engine.submit(&tester(), repeated(json!(2))).await.unwrap_err();
    assert!(matches!(&other, EngineError::Refused(Refusal::KeyReused { .. })), "{other}");
}

/// A run was named but never accepted: the repetition creates it under the announced id.
#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_was_not_made_is_made_by_its_repetition() {
    let scene = Scene::new().await;
    let run = ids::run_id(scene.engine.clock().now(), 0);
    let key = ids::submission_id(run).unwrap();
    let repeated = Submission { idempotency_key: Some(key.as_str().into()), ..submission(json!(1)) };
    assert_eq!(scene.engine.submit(&tester(), repeated.clone()).await.unwrap(), Acceptance::New(run));
    assert_eq!(scene.engine.submit(&tester(), repeated).await.unwrap(), Acceptance::Existing(run));
    assert_eq!(scene.runs().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_belongs_to_no_run_is_made_once() {
    let scene = Scene::new().await;
    let id = |n| OperationId::drawn(n);
    scene.proxy.lose_answer(COMMIT, COMMIT, 3);
    let record = scene.engine.register_workflow(&tester(), &id(1), &program("hello")).await.unwrap();
    assert!(scene.proxy.has_lost_it());
    assert_eq!(record.version, 1);
    let schedule = serde_json::from_value(json!({
        "name": "nightly", "workflow": "hello", "input": {"json": 1}, "cron": "0 1 * * *", "time_zone": "UTC",
    }));
    scene.engine.put_schedule(&tester(), &id(2), schedule.unwrap()).await.unwrap();
    scene.proxy.lose_answer(COMMIT, COMMIT, 3);
    scene.engine.remove_schedule(&tester(), &id(3), "nightly").await.unwrap();
    assert!(scene.proxy.has_lost_it());
    scene.engine.remove_schedule(&tester(), &id(3), "nightly").await.unwrap();
    assert!(
        scene.engine.remove_schedule(&tester(), &id(4), "nightly").await.is_err(),
        "there is none any more"
    );
}
