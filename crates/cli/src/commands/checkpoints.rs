//! `switchyard checkpoints …`

mod export;
mod list;
mod purge;
mod show;
mod stats;

use switchyard_base::HumanDuration;
use switchyard_checkpoints::{Checkpoints, ThreadInfo};

use crate::errors::Failure;
use crate::settings::Settings;

const URL_DEFAULT: &str = "redis://127.0.0.1:6379";

/// Look after LangGraph's checkpoints in Redis
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Show(show::Args),
    Export(export::Args),
    Purge(purge::Args),
    Stats(stats::Args),
}

/// Where the checkpoints are
#[derive(Debug, clap::Args)]
struct Target {
    /// Where Redis is: redis://, rediss://, unix://, redis+cluster:// or redis+sentinel:// [env: REDIS_URL] [default:
    /// redis://127.0.0.1:6379]
    #[arg(long, value_name = "URL")]
    redis: Option<String>,

    /// The namespace of the saver [env: CHECKPOINTER_NAMESPACE] [default: default]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

/// Which threads
#[derive(Debug, clap::Args)]
struct Which {
    /// Only this thread; may be given more than once
    #[arg(long = "thread", value_name = "ID")]
    threads: Vec<String>,

    /// Only threads that were not written to for so long, such as 12h or 30d
    #[arg(long, value_name = "DURATION")]
    older_than: Option<HumanDuration>,
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list::execute(&args, settings).await,
        Command::Show(args) => show::execute(&args, settings).await,
        Command::Export(args) => export::execute(&args, settings).await,
        Command::Purge(args) => purge::execute(&args, settings).await,
        Command::Stats(args) => stats::execute(&args, settings).await,
    }
}

impl Target {
    fn open(&self, settings: &Settings) -> Result<Checkpoints, Failure> {
        let set = settings.redis.as_ref().map(|url| url.reveal());
        let url = self.redis.as_deref().or(set).unwrap_or(URL_DEFAULT);
        let namespace = self.namespace.as_deref().unwrap_or(&settings.checkpoints_namespace);
        Ok(Checkpoints::open(url, namespace)?)
    }
}

impl Which {
    /// The latest last-write time that counts as old enough, by the clock of Redis.
    async fn cutoff_ms(&self, store: &Checkpoints) -> Result<Option<i64>, Failure> {
        let Some(age) = &self.older_than else { return Ok(None) };
        let age_ms = i64::try_from(age.0.as_millis()).unwrap_or(i64::MAX);
        Ok(Some(store.now_ms().await?.saturating_sub(age_ms)))
    }

    /// The selected threads, the last written first. Every named thread must exist.
    async fn threads(&self, store: &Checkpoints) -> Result<Vec<ThreadInfo>, Failure> {
        let cutoff_ms = self.cutoff_ms(store).await?;
        let ids = match self.threads.is_empty() {
            true => store.thread_ids().await?,
            false => self.threads.clone(),
        };
        let mut found = Vec::with_capacity(ids.len());
        for id in &ids {
            match store.thread_info(id).await? {
                Some(info) => found.push(info),
                None if self.threads.is_empty() => {}
                None => return Err(unknown_thread(id)),
            }
        }
        found.retain(|info| cutoff_ms.is_none_or(|cutoff_ms| info.at_ms <= cutoff_ms));
        found.sort_by(|a, b| (b.at_ms, &a.thread).cmp(&(a.at_ms, &b.thread)));
        Ok(found)
    }
}

fn unknown_thread(id: &str) -> Failure {
    Failure::usage(format!("there is no thread `{id}`")).hint("switchyard checkpoints list")
}

/// `1 thread`, `2 threads`
fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Bytes, rounded for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes / 1_024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}
