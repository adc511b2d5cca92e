//! Plays the same random history on the pure core, in memory and in Redis, and compares answers, state and events.

#[path = "../../../core/tests/histories/graphs.rs"]
mod graphs;
mod ops;
#[path = "../../../core/tests/histories/outcomes.rs"]
mod outcomes;
mod plain;
mod world;

use graphs::graph;
use ops::{Op, op, op_with_readers};
use proptest::prelude::*;
use switchyard_core::ir::sketch::Sketch;
use switchyard_test_servers::redis::Redis;
use world::World;

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_store_does_what_the_core_does(
        graphs in prop::collection::vec(graph(), 1..4),
        ops in prop::collection::vec(op(), 1..100),
    ) {
        live(&["memory", "redis"], graphs, &ops);
    }

    #[test]
    fn readers_of_streams_get_what_the_core_gives_by_name(
        graphs in prop::collection::vec(graph(), 1..4),
        ops in prop::collection::vec(op_with_readers(), 1..100),
    ) {
        live(&["redis"], graphs.into_iter().map(of_one_function).collect(), &ops);
    }
}

/// A reader takes a task from its stream before the core hears of it, so the two may see another first task of a
/// function. With one function there are no turns to take.
fn of_one_function(mut graph: Sketch) -> Sketch {
    graph
        .nodes
        .iter_mut()
        .filter(|node| node.queue == "function:b")
        .for_each(|node| node.queue = "function:a".into());
    graph
}

fn live(stores: &[&'static str], graphs: Vec<Sketch>, ops: &[Op]) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        // One history at a time uses the server.
        static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let _turn = TURN.lock().await;
        let mut world = World::new(server(), stores, graphs).await;
        for op in ops {
            let done = tokio::time::timeout(std::time::Duration::from_secs(20), world.act(op)).await;
            assert!(done.is_ok(), "{op:?} does not come to an end");
        }
        world.compare_histories().await;
    });
}

/// The server of this test, which flushes it between cases and within them.
fn server() -> &'static Redis {
    static SERVER: std::sync::OnceLock<Redis> = std::sync::OnceLock::new();
    SERVER.get_or_init(Redis::start)
}
