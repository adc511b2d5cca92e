//! The limit of Redis itself: calls per second of a script that executes the Redis commands of a step and nothing
//! else. One call per step, as many at once as there are slots, over one connection, like the store.

use std::time::Instant;

use futures::future::try_join_all;
use redis::aio::MultiplexedConnection;

use super::RedisPrefix;
use crate::report::Figures;

/// Number of calls of one measurement.
const CALLS: usize = 20_000;
/// Number of runs that each slot uses.
const RUNS: usize = 20;
const OUTPUT: &str = r#"{"json":null}"#;
const EVENT: &str = r#"{"node_started":{"node":"n0","attempt":1,"claim":1,"worker":"bench"}}"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A step that releases the next step of its run, and claims it.
    Chain,
    /// A step that ends its run, and claims another.
    Queue,
}

impl Limit {
    fn script(self) -> &'static str {
        match self {
            Self::Chain => include_str!("chain.lua"),
            Self::Queue => include_str!("queue.lua"),
        }
    }
}

/// Adds the limit, and the ratio that was reached.
pub(crate) async fn with_limit(
    figures: Figures,
    of: &str,
    limit: Limit,
    in_redis: &RedisPrefix,
    slots: usize,
) -> anyhow::Result<Figures> {
    let reached = figures.0[of];
    let possible = calls_per_s(limit, in_redis, slots.max(1)).await?;
    Ok(figures.with("redis_limit_per_s", possible).with("of_redis_limit", reached / possible))
}

async fn calls_per_s(limit: Limit, in_redis: &RedisPrefix, slots: usize) -> anyhow::Result<f64> {
    let mut connection = in_redis.connect().await?;
    let each = CALLS / slots;
    let begin = format!("{}limit:", in_redis.prefix);
    prepare(&mut connection, &begin, each * slots).await?;
    let load = redis::cmd("SCRIPT").arg("LOAD").arg(limit.script()).to_owned();
    let hash: String = load.query_async(&mut connection).await?;
    let began = Instant::now();
    let calling = (0..slots).map(|slot| {
        let caller = Caller { connection: connection.clone(), hash: &hash, begin: &begin, slot };
        caller.call(limit, each)
    });
    try_join_all(calling).await?;
    Ok((each * slots) as f64 / began.elapsed().as_secs_f64())
}

struct Caller<'a> {
    connection: MultiplexedConnection,
    hash: &'a str,
    begin: &'a str,
    slot: usize,
}

impl Caller<'_> {
    async fn call(mut self, limit: Limit, times: usize) -> anyhow::Result<()> {
        let mut entry = "0-1".to_owned();
        for i in 0..times {
            let mut call = redis::cmd("EVALSHA");
            call.arg(self.hash).arg(0).arg(self.begin).arg(run(self.slot, i));
            if limit == Limit::Queue {
                call.arg(run(self.slot, i + 1));
            }
            call.arg(&entry).arg(OUTPUT).arg(EVENT);
            entry = call.query_async(&mut self.connection).await?;
        }
        Ok(())
    }
}

/// A name as long as a run id.
fn run(slot: usize, i: usize) -> String {
    format!("run_{:026}", slot * RUNS + i % RUNS)
}

/// Prepares a stream with tasks in it, and a queue that is not empty.
async fn prepare(connection: &mut MultiplexedConnection, begin: &str, tasks: usize) -> anyhow::Result<()> {
    let stream = format!("{begin}tasks");
    let group =
        redis::cmd("XGROUP").arg("CREATE").arg(&stream).arg("workers").arg("0").arg("MKSTREAM").to_owned();
    group.query_async::<()>(connection).await?;
    let depth = redis::cmd("HSET").arg(format!("{begin}queued")).arg(&stream).arg(tasks).to_owned();
    depth.query_async::<()>(connection).await?;
    let mut fill = redis::pipe();
    for i in 0..tasks {
        let id = run(0, i);
        fill.cmd("XADD").arg(&stream).arg("*").arg("run_id").arg(&id).arg("node_id").arg("n0").arg("gen");
        fill.arg("3481600000000000")
            .arg("reads")
            .arg("")
            .arg("needs")
            .arg("0")
            .arg("at")
            .arg("1700000000000")
            .arg("limit")
            .arg("1800000")
            .ignore();
    }
    fill.query_async::<()>(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;
    use switchyard_core::run::{ClaimRef, Settlement, Task, TaskOutcome};
    use switchyard_runtime::{Handlers, Principal, Submission};
    use switchyard_store::Want;
    use switchyard_test_servers::redis::Redis;

    use super::super::RedisAt;
    use super::*;
    use crate::programs;

    type Counts = BTreeMap<String, i64>;

    /// Number of calls of each command, by any client.
    async fn counts(connection: &mut MultiplexedConnection) -> Counts {
        let info: String =
            redis::cmd("INFO").arg("commandstats").query_async(connection).await.expect("answered");
        let count = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
        };
        info.lines().filter_map(count).collect()
    }

    /// The commands between two counts, without INFO itself.
    fn between(before: &Counts, after: &Counts) -> Counts {
        let since =
            |(name, count): (&String, &i64)| (name.clone(), count - before.get(name).copied().unwrap_or(0));
        after.iter().map(since).filter(|(name, count)| *count > 0 && name != "info").collect()
    }

    fn done(task: &Task) -> Settlement {
        let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
        Settlement { claim, outcome: TaskOutcome::Succeeded(switchyard_core::Payload::null()) }
    }

    /// The commands of a real step in a chain of `steps` steps, while other runs are in progress.
    async fn step(in_redis: &RedisPrefix, steps: usize) -> Counts {
        let mut connection = in_redis.connect().await.expect("Redis answers");
        let store = in_redis.open(None, Handlers::with_builtins()).await.expect("it opens");
        let program = programs::chain(steps, "noop").expect("a program");
        let runs = if steps > 1 { 2 } else { 3 };
        for _ in 0..runs {
            let submission = Submission::new(program.clone(), Value::Null);
            store.engine().submit(&Principal::local("bench"), submission).await.expect("accepted");
        }
        let lease = Some(std::time::Duration::from_secs(30));
        let want = Want { worker: "w".into(), queues: ["builtin".into()].into(), max: 1, lease };
        let engine = store.engine();
        let mut held = engine.step(Vec::new(), &want).await.expect("claimed").1;
        if steps > 1 {
            // This claim empties the queue, so that the step below claims the task that it releases.
            engine.step(Vec::new(), &want).await.expect("claimed");
        }
        let before = counts(&mut connection).await;
        held = engine.step(held.iter().map(done).collect(), &want).await.expect("a step").1;
        let after = counts(&mut connection).await;
        assert_eq!(held.len(), 1);
        between(&before, &after)
    }

    #[tokio::test]
    async fn the_limit_gives_redis_the_commands_of_a_step() {
        let server = Redis::start();
        let folder = tempfile::tempdir().expect("a folder");
        for (limit, steps) in [(Limit::Chain, 3), (Limit::Queue, 1)] {
            let in_redis = RedisPrefix::at(&RedisAt(server.url()), folder.path()).expect("a place");
            let real = step(&in_redis, steps).await;
            let mut connection = in_redis.connect().await.expect("Redis answers");
            prepare(&mut connection, &in_redis.prefix, 10).await.expect("prepared");
            let load = redis::cmd("SCRIPT").arg("LOAD").arg(limit.script()).to_owned();
            let hash: String = load.query_async(&mut connection).await.expect("loaded");
            let before = counts(&mut connection).await;
            let caller =
                Caller { connection: connection.clone(), hash: &hash, begin: &in_redis.prefix, slot: 0 };
            caller.call(limit, 1).await.expect("called");
            let plain = between(&before, &counts(&mut connection).await);
            assert_eq!(plain, real, "{limit:?}");
        }
    }
}
