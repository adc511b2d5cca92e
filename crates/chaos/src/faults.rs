//! What is done to the processes.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tokio::time::{Instant, sleep, timeout_at};

use crate::deployment::Deployment;

/// Longer than the claims of workers last: who is paused for so long comes back as a zombie.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillWorker,
    KillApi,
    PauseWorker,
    PauseApi,
    RestartRedis,
    KillRedis,
    FlushRedis,
    RestartPostgres,
    CutRedis,
    CutPostgres,
}

/// Drawn from with these weights: what happens often in the world happens often here.
const FAULTS: [(Fault, u32); 10] = [
    (Fault::KillWorker, 5),
    (Fault::KillApi, 3),
    (Fault::PauseWorker, 3),
    (Fault::PauseApi, 1),
    (Fault::RestartRedis, 2),
    (Fault::KillRedis, 2),
    (Fault::FlushRedis, 2),
    (Fault::RestartPostgres, 2),
    (Fault::CutRedis, 4),
    (Fault::CutPostgres, 3),
];

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::KillWorker => "worker killed",
            Self::KillApi => "API killed",
            Self::PauseWorker => "worker paused beyond its lease",
            Self::PauseApi => "API paused",
            Self::RestartRedis => "Redis restarted",
            Self::KillRedis => "Redis killed",
            Self::FlushRedis => "Redis flushed",
            Self::RestartPostgres => "Postgres restarted",
            Self::CutRedis => "connections to Redis cut",
            Self::CutPostgres => "connections to Postgres cut",
        }
    }
}

/// One fault after the other, until the time is over. How many of each were made.
pub(crate) async fn make_trouble(
    deployment: &mut Deployment,
    mut random: StdRng,
    trouble: Duration,
) -> anyhow::Result<BTreeMap<&'static str, usize>> {
    let over = Instant::now() + trouble;
    let mut made = BTreeMap::new();
    while Instant::now() < over {
        sleep(Duration::from_millis(random.random_range(100..1_500))).await;
        let (fault, _) = FAULTS.choose_weighted(&mut random, |(_, weight)| *weight)?;
        *made.entry(fault.name()).or_default() += 1;
        // Cut short when the time is over; `heal` starts again what it stopped.
        let _ = timeout_at(over, make(*fault, deployment, &mut random)).await;
        deployment.revive()?;
    }
    Ok(made)
}

async fn make(fault: Fault, deployment: &mut Deployment, random: &mut StdRng) -> anyhow::Result<()> {
    let down = Duration::from_millis(random.random_range(0..2_000));
    match fault {
        Fault::KillWorker => {
            down_for(down, deployment, |deployment, i| deployment.worker(i).kill(), random).await
        }
        Fault::KillApi => down_for(down, deployment, |deployment, i| deployment.api(i).kill(), random).await,
        Fault::PauseWorker => {
            down_for(BEYOND_THE_LEASE, deployment, |deployment, i| deployment.worker(i).pause(), random).await
        }
        Fault::PauseApi => {
            down_for(down, deployment, |deployment, i| deployment.api(i).pause(), random).await
        }
        Fault::RestartRedis => {
            down_for(down, deployment, |deployment, _| deployment.stop_redis(), random).await
        }
        Fault::KillRedis => down_for(down, deployment, |deployment, _| deployment.kill_redis(), random).await,
        Fault::FlushRedis => deployment.flush_redis().await?,
        Fault::RestartPostgres => {
            down_for(down, deployment, |deployment, _| deployment.stop_postgres(), random).await
        }
        Fault::CutRedis => deployment.cut_redis(),
        Fault::CutPostgres => deployment.cut_postgres(),
    }
    Ok(())
}

async fn down_for(
    how_long: Duration,
    deployment: &mut Deployment,
    take_down: fn(&mut Deployment, usize),
    random: &mut StdRng,
) {
    take_down(deployment, random.random_range(0..100));
    sleep(how_long).await;
}
