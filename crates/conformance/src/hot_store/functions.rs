//! Queues of functions: a worker gets the functions that it names, and no others.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::in_flight::Want;
use switchyard_core::ir::queue_name;
use switchyard_core::ir::sketch::Sketch;

use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    a_worker_gets_the_functions_that_it_names(&backend.open().await).await;
    a_queue_and_a_function_of_the_same_name_are_two(&backend.open().await).await;
    the_function_whose_task_waits_longest_goes_first(&backend.open().await).await;
    a_task_that_no_worker_names_waits(&backend.open().await).await;
}

/// Starts a run with one node that calls this function and has its name.
async fn call(fixture: &Fixture, function: &str) {
    let queue = queue_name::of_function(function).to_string();
    fixture.start(&Sketch::new().node(function, &[]).with(|node| node.queue = queue)).await;
}

async fn claim(fixture: &Fixture, queues: &[&str], max: usize) -> Vec<String> {
    let queues: Arc<[Arc<str>]> = queues.iter().map(|&queue| queue.into()).collect();
    let want = Want { queues, ..fixture.want(max) };
    let (_, tasks) = fixture.hot.step(Vec::new(), &want).await.expect("a claim is answered");
    tasks.iter().map(|task| task.node.to_string()).collect()
}

async fn a_worker_gets_the_functions_that_it_names(fixture: &Fixture) {
    for function in ["enrich", "enrich@2", "mail"] {
        call(fixture, function).await;
    }
    assert_eq!(claim(fixture, &["function:enrich@2", "function:absent"], 9).await, ["enrich@2"]);
    assert_eq!(claim(fixture, &["function:enrich*"], 9).await, ["enrich"]);
    assert_eq!(claim(fixture, &["http", "function", "function:*"], 9).await, ["mail"]);
}

async fn a_queue_and_a_function_of_the_same_name_are_two(fixture: &Fixture) {
    call(fixture, "gpu").await;
    fixture
        .start(&Sketch::new().node("in_queue", &[]).with(|node| node.queue = "function.gpu".to_owned()))
        .await;
    assert_eq!(claim(fixture, &["function.gpu"], 9).await, ["in_queue"]);
    assert_eq!(claim(fixture, &["function:gpu"], 9).await, ["gpu"]);
}

async fn the_function_whose_task_waits_longest_goes_first(fixture: &Fixture) {
    for function in ["zoom", "alter", "zoom", "mail"] {
        call(fixture, function).await;
        fixture.clock.advance(Duration::from_secs(1));
    }
    let named = ["function:alter", "function:mail", "function:zoom"];
    assert_eq!(claim(fixture, &named, 1).await, ["zoom"]);
    assert_eq!(claim(fixture, &named, 1).await, ["alter"], "the second `zoom` came later");
    assert_eq!(claim(fixture, &["function:*"], 1).await, ["zoom"]);
    assert_eq!(claim(fixture, &["function:*"], 1).await, ["mail"]);
}

async fn a_task_that_no_worker_names_waits(fixture: &Fixture) {
    call(fixture, "enrich").await;
    assert!(claim(fixture, &["function:mail", "function.enrich"], 9).await.is_empty());
    let depths = fixture.hot.queues().await.expect("queues are counted");
    let waiting = depths.iter().find(|depth| &*depth.queue == "function:enrich").map(|depth| depth.bands[1]);
    assert_eq!(waiting.map(|band| (band.waiting, band.claimed)), Some((1, 0)));
    assert_eq!(claim(fixture, &["function:enrich"], 9).await, ["enrich"]);
}
