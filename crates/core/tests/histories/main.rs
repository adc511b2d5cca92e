//! Random graphs, random histories: the invariants of the design hold after every step.
//!
//! The test drives a world by random operations, duplicate and stale ones among them. It checks the invariants after
//! each operation; at the end it drains the world, and every run must have ended.

mod checks;
mod graphs;
mod outcomes;
mod world;

use graphs::graph;
use proptest::prelude::*;
use world::{Op, World, op};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold_in_every_history(
        graphs in prop::collection::vec(graph(), 1..4),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut world = World::new(graphs);
        world.act(&Op::Accept { graph: 0, key: None, delay: None, priority: None });
        for op in &ops {
            world.act(op);
        }
        world.drain();
    }

    /// I6 and I12: the process may die at any moment; the runs that its journal rebuilds continue and end.
    #[test]
    fn a_restart_at_any_moment_loses_nothing(
        graphs in prop::collection::vec(graph(), 1..3),
        before in prop::collection::vec(op(), 1..60),
        after in prop::collection::vec(op(), 0..30),
    ) {
        let mut world = World::new(graphs);
        world.act(&Op::Accept { graph: 0, key: None, delay: None, priority: None });
        for op in &before {
            world.act(op);
        }
        world.act(&Op::Restart);
        for op in &after {
            world.act(op);
        }
        world.drain();
    }
}
