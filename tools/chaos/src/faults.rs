//! The faults that the test injects.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use tokio::time::{Instant, sleep, timeout_at};

use crate::deployment::Deployment;
use crate::proxy::Behaviour;

/// Longer than a worker's lease: a worker that is paused this long returns as a zombie.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(4);
/// Longer than the time limit for an answer of Redis or Postgres.
const BEYOND_THE_TIME_OUT: Duration = Duration::from_millis(5_500);
/// Longer than a server tries to find out an outcome before it reports it as unknown.
const BEYOND_EVERY_REQUEST: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    KillWorker,
    KillApi,
    PauseWorker,
    PauseApi,
    RestartRedis,
    KillRedis,
    FlushRedis,
    CutAofTail,
    PromoteStaleReplica,
    FillRedis,
    KillRedisConnections,
    CutRedis,
    LoseRedisAnswers,
    MuteRedis,
    RestartPostgres,
    PausePostgres,
    MutePostgres,
    KillPostgresConnections,
    NoPostgresConnections,
    SlowPostgres,
    CutPostgres,
    LosePostgresAnswers,
    SecondArchive,
    SpoilOutbox,
}

/// The faults with their weights: faults that are frequent in production are frequent here.
const FAULTS: [(Fault, u32); 24] = [
    (Fault::KillWorker, 5),
    (Fault::KillApi, 3),
    (Fault::PauseWorker, 3),
    (Fault::PauseApi, 1),
    (Fault::RestartRedis, 2),
    (Fault::KillRedis, 2),
    (Fault::FlushRedis, 2),
    (Fault::CutAofTail, 2),
    (Fault::PromoteStaleReplica, 2),
    (Fault::FillRedis, 2),
    (Fault::KillRedisConnections, 3),
    (Fault::CutRedis, 4),
    (Fault::LoseRedisAnswers, 5),
    (Fault::MuteRedis, 1),
    (Fault::RestartPostgres, 2),
    (Fault::PausePostgres, 2),
    (Fault::MutePostgres, 1),
    (Fault::KillPostgresConnections, 3),
    (Fault::NoPostgresConnections, 2),
    (Fault::SlowPostgres, 3),
    (Fault::CutPostgres, 3),
    (Fault::LosePostgresAnswers, 4),
    (Fault::SecondArchive, 1),
    (Fault::SpoilOutbox, 2),
];

/// The delay of requests to Postgres while it is slow.
const COMMIT_DELAY: Duration = Duration::from_millis(150);
/// How long a fault lasts or is repeated until it affects a process.
const SEEN_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often a fault was injected, and its observed effects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    pub times: usize,
    pub seen: u64,
    /// The unit of `seen`; `None` for a fault that needs no proof: the process was ended or stopped.
    pub unit: Option<&'static str>,
}

/// How many kinds of fault there are.
pub const FAULT_KINDS: usize = FAULTS.len();

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
            Self::CutAofTail => "end of the append-only file lost",
            Self::PromoteStaleReplica => "stale replica promoted",
            Self::FillRedis => "Redis out of memory",
            Self::KillRedisConnections => "connections killed by Redis",
            Self::CutRedis => "connections to Redis cut",
            Self::LoseRedisAnswers => "answers of Redis lost",
            Self::MuteRedis => "Redis mute beyond the time-out",
            Self::RestartPostgres => "Postgres restarted",
            Self::PausePostgres => "Postgres paused",
            Self::MutePostgres => "Postgres mute beyond the time-out",
            Self::KillPostgresConnections => "connections killed by Postgres",
            Self::NoPostgresConnections => "Postgres out of connections",
            Self::SlowPostgres => "slow commits",
            Self::CutPostgres => "connections to Postgres cut",
            Self::LosePostgresAnswers => "answers of Postgres lost",
            Self::SecondArchive => "second archive on the same Redis",
            Self::SpoilOutbox => "entry of the outbox that makes no sense",
        }
    }

    fn unit(self) -> Option<&'static str> {
        Some(match self {
            Self::CutAofTail => "bytes lost",
            Self::PromoteStaleReplica => "bytes behind",
            Self::FillRedis => "commands refused",
            Self::KillRedisConnections | Self::CutRedis => "connections",
            Self::KillPostgresConnections | Self::CutPostgres => "connections",
            Self::LoseRedisAnswers | Self::MuteRedis => "answers lost",
            Self::LosePostgresAnswers | Self::MutePostgres => "answers lost",
            Self::PausePostgres => "processes stopped",
            Self::NoPostgresConnections => "connections refused",
            Self::SlowPostgres => "requests late",
            Self::SecondArchive => "processes refused",
            Self::SpoilOutbox => "dead letters",
            _ => return None,
        })
    }
}

/// Injects every fault once in a random order, each for a short time; then one after the other until the time is
/// over. Returns how often each was injected.
pub(crate) async fn make_trouble(
    deployment: &mut Deployment,
    mut random: StdRng,
    trouble: Duration,
) -> anyhow::Result<BTreeMap<&'static str, Made>> {
    let over = Instant::now() + trouble;
    let mut made: BTreeMap<&'static str, Made> = BTreeMap::new();
    let mut all: Vec<Fault> = FAULTS.iter().map(|(fault, _)| *fault).collect();
    all.shuffle(&mut random);
    for fault in all {
        sleep(Duration::from_millis(random.random_range(50..400))).await;
        let seen = make(fault, deployment, &mut random, Duration::from_millis(700)).await?;
        made.entry(fault.name()).or_default().add(fault, seen);
        deployment.revive().await?;
    }
    while Instant::now() < over {
        sleep(Duration::from_millis(random.random_range(100..1_500))).await;
        let (fault, _) = FAULTS.choose_weighted(&mut random, |(_, weight)| *weight)?;
        // Cut short when the time is over; `revive` undoes the fault.
        let seen = match timeout_at(over, make(*fault, deployment, &mut random, Duration::from_secs(2))).await
        {
            Ok(seen) => seen?,
            Err(_) => 0,
        };
        made.entry(fault.name()).or_default().add(*fault, seen);
        deployment.revive().await?;
    }
    Ok(made)
}

impl Made {
    fn add(&mut self, fault: Fault, seen: u64) {
        self.times += 1;
        self.seen += seen;
        self.unit = fault.unit();
    }
}

/// Injects a fault and keeps it up until an effect is observed, or `SEEN_WITHIN` has passed. Returns the number of
/// effects, in the unit of the fault.
async fn make(
    fault: Fault,
    deployment: &mut Deployment,
    random: &mut StdRng,
    longest: Duration,
) -> anyhow::Result<u64> {
    let mut seen = begin(fault, deployment, random).await?;
    let before = disturbed(fault, deployment).await?;
    sleep(how_long(fault, random, longest)).await;
    let by = Instant::now() + SEEN_WITHIN;
    while fault.unit().is_some() && seen == 0 && Instant::now() < by {
        seen = match before {
            Some(before) => disturbed(fault, deployment).await?.unwrap_or(0).saturating_sub(before),
            // The fault affected no process at that moment, so it is repeated.
            None => begin(fault, deployment, random).await?,
        };
        sleep(LOOK_EVERY).await;
    }
    if fault == Fault::PromoteStaleReplica {
        deployment.fail_redis_over().await?;
    }
    Ok(seen)
}

async fn begin(fault: Fault, deployment: &mut Deployment, random: &mut StdRng) -> anyhow::Result<u64> {
    let which = random.random_range(0..100);
    match fault {
        Fault::KillWorker => deployment.worker(which).kill(),
        Fault::KillApi => deployment.api(which).kill(),
        Fault::PauseWorker => deployment.worker(which).pause(),
        Fault::PauseApi => deployment.api(which).pause(),
        Fault::RestartRedis => deployment.redis().stop(),
        Fault::KillRedis => deployment.redis().kill(),
        Fault::FlushRedis => deployment.redis().operate("FLUSHALL").await.map(drop)?,
        Fault::CutAofTail => return deployment.redis().kill_and_cut_tail(random.random_range(1..20_000)),
        Fault::PromoteStaleReplica => deployment.redis().leave_the_other_behind().await?,
        Fault::FillRedis => deployment.redis().operate("CONFIG SET maxmemory 1").await.map(drop)?,
        Fault::KillRedisConnections => return deployment.redis().kill_connections().await,
        Fault::CutRedis => return Ok(deployment.to_redis().cut()),
        Fault::LoseRedisAnswers => deployment.to_redis().behave(Behaviour::AnswersLost),
        Fault::MuteRedis => deployment.to_redis().behave(Behaviour::Mute),
        Fault::RestartPostgres => deployment.stop_postgres(),
        Fault::PausePostgres => return Ok(deployment.pause_postgres()),
        Fault::MutePostgres => deployment.to_postgres().behave(Behaviour::Mute),
        Fault::KillPostgresConnections => return deployment.kill_postgres_connections(),
        Fault::NoPostgresConnections => deployment.allow_no_postgres_connections()?,
        Fault::SlowPostgres => deployment.to_postgres().behave(Behaviour::Slow(COMMIT_DELAY)),
        Fault::CutPostgres => return Ok(deployment.to_postgres().cut()),
        Fault::LosePostgresAnswers => deployment.to_postgres().behave(Behaviour::AnswersLost),
        Fault::SecondArchive => return deployment.start_second_archive().await.map(u64::from),
        Fault::SpoilOutbox => return deployment.spoil_outbox().await,
    }
    Ok(0)
}

fn how_long(fault: Fault, random: &mut StdRng, longest: Duration) -> Duration {
    match fault {
        Fault::PauseWorker => BEYOND_THE_LEASE,
        Fault::MutePostgres if longest > BEYOND_THE_TIME_OUT / 4 => BEYOND_EVERY_REQUEST,
        Fault::MuteRedis | Fault::MutePostgres => BEYOND_THE_TIME_OUT,
        Fault::FlushRedis | Fault::CutRedis | Fault::CutPostgres => Duration::ZERO,
        Fault::SecondArchive | Fault::SpoilOutbox => Duration::ZERO,
        _ => random.random_range(Duration::ZERO..longest),
    }
}

/// A counter that grows while the fault has effects; `None` for a fault without such a counter.
async fn disturbed(fault: Fault, deployment: &mut Deployment) -> anyhow::Result<Option<u64>> {
    Ok(Some(match fault {
        Fault::LoseRedisAnswers | Fault::MuteRedis => deployment.to_redis().disturbed(),
        Fault::LosePostgresAnswers | Fault::MutePostgres | Fault::SlowPostgres => {
            deployment.to_postgres().disturbed()
        }
        Fault::NoPostgresConnections => deployment.to_postgres().connections(),
        Fault::FillRedis => deployment.redis().refused_for_memory().await?,
        Fault::PromoteStaleReplica => deployment.redis().written().await?,
        _ => return Ok(None),
    }))
}
