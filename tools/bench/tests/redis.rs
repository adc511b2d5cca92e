//! `bench --store redis://` measures on a Redis that other programs use, and removes all of its keys.

use clap::Parser;
use switchyard_bench::{Args, run};
use switchyard_test_servers::redis::Redis;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn args(words: &[&str]) -> Args {
    let small =
        ["--repeat", "1", "--warmup", "0", "--slots", "4", "--chain-runs", "5", "--latency-runs", "2"];
    let small = small.iter().chain(&["--fan-runs", "2", "--fan-width", "3", "--queue-runs", "20"]);
    let small = small.chain(&["--memory-runs", "20", "--waiting-runs", "30"]);
    Cli::parse_from(["bench"].iter().chain(words).chain(small)).args
}

fn keys(server: &Redis) -> Vec<String> {
    let client = redis::Client::open(server.url()).expect("an address");
    let mut connection = client.get_connection().expect("Redis answers");
    redis::cmd("KEYS").arg("*").query(&mut connection).expect("answered")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_measures_beside_others_and_cleans_up() {
    let server = Redis::start();
    let client = redis::Client::open(server.url()).expect("an address");
    let mut connection = client.get_connection().expect("Redis answers");
    redis::cmd("SET").arg("run:somebody-else").arg("1").exec(&mut connection).expect("set");
    let url = server.url();
    let args = args(&["--store", &url, "chain", "fan", "queue", "latency", "memory", "waiting"]);
    let report = run(&args, |_| {}).await.expect("measured").to_json();
    for (workload, figure) in [
        ("chain", "steps_per_s"),
        ("chain", "redis_limit_per_s"),
        ("chain", "of_redis_limit"),
        ("fan", "of_redis_limit"),
        ("queue", "drain_per_s"),
        ("queue", "of_redis_limit"),
        ("latency", "step_p50_in_pings"),
        ("memory", "bytes_per_run_half_done"),
        ("waiting", "steps_per_s_beside_30"),
    ] {
        let figure_of = report["workloads"][workload][figure].as_f64();
        assert!(figure_of.is_some_and(|figure| figure > 0.0), "{workload} has no {figure}: {report}");
    }
    assert_eq!(keys(&server), ["run:somebody-else"]);
}

#[tokio::test]
async fn what_cannot_be_measured_is_said_first() {
    let cases = [
        (&["workers", "--store", "redis://127.0.0.1:1"][..], "--archive postgres://"),
        (&["waiting"], "--store redis://"),
        (&["chain", "--archive", "postgres://127.0.0.1/x"], "--store redis://"),
    ];
    for (words, expected) in cases {
        let error = run(&args(words), |_| {}).await.expect_err("refused");
        assert!(error.to_string().contains(expected), "{words:?}: {error}");
    }
}
