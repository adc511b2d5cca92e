//! The workloads of `switchyard bench`: warm-up, repetitions, medians, and the raw cost of a disk sync measured
//! beside them in the same run.
//!
//! Results, never assertions: machines are noisy. Every workload uses the public engine, as a user's would.

mod chain;
mod decisions;
mod disk;
mod fan;
mod http;
mod large;
mod latency;
mod lists;
mod memory;
mod programs;
mod queue;
mod redis;
mod report;
mod sse;
mod store;
mod waiting;
mod workers;

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

pub use redis::RedisAt;
pub use report::{Figures, Report};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Runs of sequential no-op steps, many in flight: steps per second
    Chain,
    /// One run at a time: time per step
    Latency,
    /// One node, then many, then one: nodes per second, time per run
    Fan,
    /// Enqueue single-node runs, then drain them
    Queue,
    /// Bytes of memory per active run: of this process, or of Redis
    Memory,
    /// One signal at a time: time until it is acknowledged, beside a plain commit; only if named
    Decisions,
    /// The chain in a Redis that holds 1,000 waiting runs, and in one that holds many more; only if named, and only
    /// with --store redis://
    Waiting,
    /// The chain with one worker process and with two; only if named, and only with --store redis:// and --archive
    Workers,
    /// Single runs with many nodes and with long lists: time per run, for growing sizes; only if named
    Large,
    /// First pages of lists by filter, in an archive with many runs: SQLite, or the Postgres of --archive; only if named
    Lists,
    /// A running server over loopback: submissions per second beside those of /healthz, then one busy run with many
    /// subscribers; only if named
    Http,
}

impl Workload {
    /// The workloads that need only this process.
    const ALL: [Self; 5] = [Self::Chain, Self::Latency, Self::Fan, Self::Queue, Self::Memory];
}

/// Sizes of the workloads. The defaults are those of the figures in the README.
#[derive(Clone, Debug, ClapArgs)]
#[group(skip)]
pub struct Args {
    /// Workloads to run, all of them if none is named
    #[arg(value_enum)]
    pub workloads: Vec<Workload>,

    /// Where state lives: `embedded` (memory and SQLite) in a temporary folder, `embedded:DIR`, or a Redis by its URL
    /// (`redis://`, `rediss://`, `redis+unix://`), under a prefix of its own
    #[arg(long, default_value = "embedded")]
    pub store: Store,

    /// With --store redis://, where history is kept: a Postgres by its URL, in a schema of its own; if not given,
    /// SQLite in a temporary folder
    #[arg(long, value_name = "URL")]
    pub archive: Option<String>,

    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,

    /// Measured repetitions of each workload; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Repetitions before those, not measured
    #[arg(long, default_value_t = 1)]
    pub warmup: u32,

    /// Tasks executed at once
    #[arg(long, default_value_t = 64)]
    pub slots: usize,

    /// chain: number of runs
    #[arg(long, default_value_t = 3_000)]
    pub chain_runs: usize,
    /// chain: steps of each run
    #[arg(long, default_value_t = 10)]
    pub chain_steps: usize,
    /// chain: runs in flight at once
    #[arg(long, default_value_t = 50)]
    pub chain_in_flight: usize,

    /// latency: number of runs
    #[arg(long, default_value_t = 100)]
    pub latency_runs: usize,
    /// latency: steps of each run
    #[arg(long, default_value_t = 10)]
    pub latency_steps: usize,

    /// fan: number of runs
    #[arg(long, default_value_t = 50)]
    pub fan_runs: usize,
    /// fan: nodes in the middle of each run
    #[arg(long, default_value_t = 50)]
    pub fan_width: usize,
    /// fan: runs in flight at once
    #[arg(long, default_value_t = 10)]
    pub fan_in_flight: usize,

    /// queue: number of runs
    #[arg(long, default_value_t = 20_000)]
    pub queue_runs: usize,
    /// queue: submissions in flight at once
    #[arg(long, default_value_t = 64)]
    pub queue_submitters: usize,

    /// memory: number of active runs
    #[arg(long, default_value_t = 20_000)]
    pub memory_runs: usize,
    /// memory: nodes of each run
    #[arg(long, default_value_t = 10)]
    pub memory_steps: usize,

    /// large: nodes behind one node, and items of a list
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 5_000, 10_000, 50_000])]
    pub large_sizes: Vec<usize>,

    /// decisions: number of signals
    #[arg(long, default_value_t = 1_000)]
    pub decisions: usize,

    /// lists: runs in the archive
    #[arg(long, default_value_t = 1_000_000)]
    pub lists_runs: usize,

    /// waiting: runs that wait in Redis the second time
    #[arg(long, default_value_t = 200_000)]
    pub waiting_runs: usize,

    /// http: the server to drive
    #[arg(long, default_value = "http://127.0.0.1:7070", value_name = "URL")]
    pub http_url: String,
    /// http: requests with each number of connections
    #[arg(long, default_value_t = 5_000)]
    pub http_requests: usize,
    /// http: subscribers to the events of one run
    #[arg(long, default_value_t = 1_000)]
    pub http_subscribers: usize,
    /// http: steps of that run
    #[arg(long, default_value_t = 200)]
    pub http_steps: usize,
    /// http: an API key, if the server wants one
    #[arg(long, env = "SWITCHYARD_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub http_key: Option<String>,
}

/// The stores that can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    Embedded(Option<PathBuf>),
    Redis(RedisAt),
}

impl std::str::FromStr for Store {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "embedded" => Ok(Self::Embedded(None)),
            Some(("embedded", folder)) if !folder.is_empty() => Ok(Self::Embedded(Some(folder.into()))),
            Some(("redis" | "rediss" | "redis+unix", _)) => Ok(Self::Redis(RedisAt(text.to_owned()))),
            _ => Err(format!(
                "`{text}` is not a store; expected `embedded`, `embedded:DIR`, or a URL like redis://127.0.0.1"
            )),
        }
    }
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Embedded(None) => f.write_str("embedded"),
            Self::Embedded(Some(folder)) => write!(f, "embedded:{}", folder.display()),
            Self::Redis(redis) => redis.fmt(f),
        }
    }
}

/// Runs the workloads one after the other, and reports each one's name to `progress`.
pub async fn run(args: &Args, progress: impl Fn(&str)) -> anyhow::Result<Report> {
    check(args)?;
    let mut report = Report::new(args);
    progress("disk sync");
    report.add("disk", disk::sync_latency(args)?);
    let workloads = if args.workloads.is_empty() { &Workload::ALL[..] } else { &args.workloads };
    for workload in workloads {
        let name = workload.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut measured = Vec::new();
        for round in 0..args.warmup + args.repeat {
            let warming = round < args.warmup;
            progress(&format!("{name}, {} {}", if warming { "warm-up" } else { "round" }, round + 1));
            let figures = one(*workload, args).await?;
            if !warming {
                measured.push(figures);
            }
        }
        report.add(&name, Figures::median(&measured));
    }
    Ok(report)
}

/// Refuses arguments that cannot be measured, before any measurement.
fn check(args: &Args) -> anyhow::Result<()> {
    let in_redis = matches!(args.store, Store::Redis(_));
    let named = |workload| args.workloads.contains(&workload);
    if args.archive.is_some() && !in_redis && args.workloads != [Workload::Lists] {
        anyhow::bail!("--archive is for --store redis:// and for `lists`; an embedded store has its own");
    }
    if (named(Workload::Waiting) || named(Workload::Workers)) && !in_redis {
        anyhow::bail!("`waiting` and `workers` measure a shared store: name one with --store redis://");
    }
    if named(Workload::Workers) && args.archive.is_none() {
        anyhow::bail!(
            "`workers` needs an archive that processes can share: name one with --archive postgres://"
        );
    }
    Ok(())
}

async fn one(workload: Workload, args: &Args) -> anyhow::Result<Figures> {
    match workload {
        Workload::Chain => chain::measure(args).await,
        Workload::Latency => latency::measure(args).await,
        Workload::Fan => fan::measure(args).await,
        Workload::Queue => queue::measure(args).await,
        Workload::Memory => memory::measure(args).await,
        Workload::Decisions => decisions::measure(args).await,
        Workload::Waiting => waiting::measure(args).await,
        Workload::Workers => workers::measure(args).await,
        Workload::Lists => lists::measure(args).await,
        Workload::Large => large::measure(args).await,
        Workload::Http => http::measure(args).await,
    }
}
