//! Metrics and spans of processes that share the work.

use std::collections::BTreeMap;

use switchyard_test_servers::free_port;

use crate::collector;
use crate::fixture::Fixture;

/// Each step is reported once, no matter which process executes it or ships its events, also when the shipper changes.
#[tokio::test]
async fn each_span_is_reported_once() {
    let (collector, received) = collector::start();
    let mut fixture = Fixture::with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector)]);
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(fixture.submitted().await);
    }
    for run in &runs {
        fixture.until_at(run, "first", "waiting").await;
    }
    fixture.stop_first();
    for run in &runs {
        fixture.signal(run, "first").await;
        fixture.signal(run, "second").await;
    }
    for run in &runs {
        fixture.until(run, |view| view["status"] == "succeeded").await;
    }
    fixture.stop_all();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut ids = std::collections::BTreeSet::new();
    for span in received.try_iter() {
        assert!(ids.insert(span.span_id.clone()), "{} was reported twice", span.name);
        *names.entry(span.name).or_default() += 1;
    }
    let steps = ["step after", "step before", "step between", "step first", "step second"];
    for name in steps.iter().chain(&["run gates", "wait first", "wait second"]) {
        assert_eq!(names.get(*name), Some(&runs.len()), "{name} in {names:?}");
    }
}

/// Each event is counted by one process; the sums over all processes are complete.
#[tokio::test]
async fn the_metrics_of_all_processes_add_up() {
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    // Only one process can bind that address: the one that starts first.
    let mut fixture = Fixture::with_first(&[("SWITCHYARD_METRICS_LISTEN", &listen)]);
    let run = fixture.submitted().await;
    fixture.signal(&run, "first").await;
    fixture.signal(&run, "second").await;
    fixture.until(&run, |view| view["status"] == "succeeded").await;
    let worker = format!("http://{listen}");
    assert_eq!(fixture.metric("switchyard_runs_accepted_total").await, Some(1.0));
    let of_worker = async |name: &str| fixture.metric_at(&worker, name).await;
    assert_eq!(of_worker(r#"switchyard_runs_ended_total{status="succeeded"}"#).await, Some(1.0));
    assert_eq!(of_worker(r#"switchyard_steps_total{outcome="succeeded"}"#).await, Some(5.0));
    assert_eq!(of_worker(r#"switchyard_steps_total{outcome="waiting"}"#).await, Some(2.0));
    for name in ["switchyard_redis_up", "switchyard_archive_up"] {
        assert_eq!(of_worker(name).await, Some(1.0), "{name}");
    }
    for name in ["switchyard_runs_in_flight", "switchyard_archive_pending_events", "switchyard_timers"] {
        assert_eq!(of_worker(name).await, Some(0.0), "{name}");
    }
    assert!(fixture.get_at(&worker, "/readyz").await.status().is_success());
    assert_eq!(fixture.get_at(&worker, "/v1/runs").await.status().as_u16(), 404);
    fixture.assert_all_run();
}
