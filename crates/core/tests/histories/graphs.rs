//! Random acyclic graphs with every policy.

use std::time::Duration;

use proptest::prelude::*;
use switchyard_core::ir::AttemptLimit;
use switchyard_core::ir::sketch::{Drawn, DrawnOnError, Sketch};

pub(crate) const QUEUES: [&str; 4] = ["work", "other", "function:a", "function:b"];

pub(crate) fn graph() -> impl Strategy<Value = Sketch> {
    let nodes = prop::collection::vec(any::<[u8; 6]>(), 1..9);
    (nodes, prop::option::weighted(0.2, 1u32..4))
        .prop_map(|(nodes, parallelism)| Sketch { nodes: draw(&nodes), parallelism })
}

/// Each node is drawn from six random bytes, so that shrinking stays simple.
fn draw(seeds: &[[u8; 6]]) -> Vec<Drawn> {
    let last = seeds.len() - 1;
    seeds
        .iter()
        .enumerate()
        .map(|(i, seed)| Drawn {
            id: format!("n{i}"),
            needs: (0..i).filter(|j| (seed[0] >> (j % 8)) & 1 == 1).map(|j| format!("n{j}")).collect(),
            any: seed[1].is_multiple_of(4),
            on_error: match seed[2] % 8 {
                0 | 1 => DrawnOnError::Continue,
                // Forward only, which keeps the graph acyclic.
                2 if i < last => {
                    DrawnOnError::Goto(format!("n{}", i + 1 + usize::from(seed[3]) % (last - i)))
                }
                _ => DrawnOnError::Fail,
            },
            max_attempts: 1 + u32::from(seed[4] % 3),
            compensated: seed[5].is_multiple_of(3),
            priority: (seed[5] % 3 > 0).then_some(1 + seed[5] % 10),
            queue: QUEUES[usize::from(seed[1]) % QUEUES.len()].to_owned(),
            limit: limit(seed[3]),
        })
        .collect()
}

/// No limit, a limit before the end of a lease, or a limit that only a claim with heartbeats reaches.
fn limit(seed: u8) -> AttemptLimit {
    match seed % 4 {
        0 => AttemptLimit::Own(Duration::from_secs(20)),
        1 => AttemptLimit::Own(Duration::from_secs(70)),
        _ => AttemptLimit::Unlimited,
    }
}
