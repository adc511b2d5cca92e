//! The same random history on the pure core, in memory and in Redis: the same answers, the same state, the same events.

#[path = "../../../core/tests/histories/graphs.rs"]
mod graphs;
mod ops;
mod world;

use graphs::graph;
use ops::op;
use proptest::prelude::*;
use switchyard_test_servers::redis::Redis;
use world::World;

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_store_does_what_the_core_does(
        graphs in prop::collection::vec(graph(), 1..4),
        ops in prop::collection::vec(op(), 1..100),
    ) {
        tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
            let mut world = World::new(server(), graphs).await;
            for op in &ops {
                let done = tokio::time::timeout(std::time::Duration::from_secs(20), world.act(op)).await;
                assert!(done.is_ok(), "{op:?} does not come to an end");
            }
            world.compare_histories().await;
        });
    }
}

/// Its own server: it is flushed between cases, and within them.
fn server() -> &'static Redis {
    static SERVER: std::sync::OnceLock<Redis> = std::sync::OnceLock::new();
    SERVER.get_or_init(Redis::start)
}
