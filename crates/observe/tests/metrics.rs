//! The documented metrics are the exposed metrics.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use switchyard_observe::{Gauges, METRICS, Observe, reference};

/// Every family on a page, as the page names it.
fn exposed(page: &str) -> BTreeSet<String> {
    let described = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let named = described.map(|line| {
        let (name, kind) = line.split_once(' ').unwrap();
        if kind == "counter" { format!("{name}_total") } else { name.to_owned() }
    });
    named.collect()
}

#[test]
fn what_is_documented_is_exposed_and_nothing_else() {
    let observe = Observe::default();
    let metrics = observe.metrics();
    metrics.request("/v1/runs", "GET", 200, Duration::from_micros(700));
    metrics.executed("function.gpu", "succeeded", Duration::from_secs(2));
    metrics.claimed_step("transform", Duration::ZERO);
    metrics.settled("succeeded");
    metrics.signalled("settled");
    metrics.consumers_scanned(2, 1, 0);
    metrics.entries_moved(3, 0, 1);
    metrics.long_pending(&[("http".into(), "normal", 2)]);
    let depths = vec![("function.gpu".into(), "high", 3)];
    metrics.redis_is_up(true);
    metrics.archive_is_up(true);
    metrics.redis_failed("loading");
    let gauges = Gauges { runs: 5, timers: 1, depths, behind: None };
    let page = metrics.page(Some(&gauges));
    let documented: BTreeSet<String> = METRICS.iter().map(|about| about.full_name()).collect();
    assert_eq!(exposed(&page), documented);
    for line in [
        r#"switchyard_http_request_duration_seconds_bucket{le="0.0005",route="/v1/runs",method="GET"} 0"#,
        r#"switchyard_http_request_duration_seconds_bucket{le="0.001",route="/v1/runs",method="GET"} 1"#,
        r#"switchyard_http_request_duration_seconds_bucket{le="+Inf",route="/v1/runs",method="GET"} 1"#,
        r#"switchyard_step_duration_seconds_sum{kind="function",outcome="succeeded"} 2.0"#,
        r#"switchyard_queue_depth{queue="function.gpu",priority="high"} 3"#,
        "switchyard_ghost_consumers_found_total 2",
        r#"switchyard_pending_entries_moved_total{how="returned"} 3"#,
        r#"switchyard_long_pending_entries{queue="http",priority="normal"} 2"#,
        r#"switchyard_runs_ended_total{status="failed"} 0"#,
        "switchyard_archive_lag_seconds 0.0",
        "switchyard_runs_in_flight 5",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    // The page no longer shows a queue that is gone.
    assert!(!metrics.page(Some(&Gauges::default())).contains("gpu\",priority"));
    // The page shows no stale values of the store when it does not answer.
    let alone = metrics.page(None);
    assert!(!alone.lines().any(|line| line.starts_with("switchyard_runs_in_flight ")), "{alone}");
    assert!(alone.lines().any(|line| line == "switchyard_redis_up 1"), "{alone}");
}

#[test]
fn the_page_about_them_is_the_one_checked_in() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("SWITCHYARD_UPDATE_DOCS").is_some() {
        std::fs::write(&path, reference()).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == reference(),
        "docs/reference/metrics.md is old: run this test with SWITCHYARD_UPDATE_DOCS=1"
    );
}
