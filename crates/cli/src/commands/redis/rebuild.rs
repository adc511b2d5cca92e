//! `switchyard redis rebuild`

use std::time::Duration;

use serde_json::json;
use switchyard_store::ArchiveMark;
use switchyard_store_redis::{Holdings, RedisAdmin};
use tokio::time::sleep;

use crate::errors::Failure;
use crate::flags::StoreArgs;
use crate::output;
use crate::settings::Settings;
use crate::stores::{self, Role, Stores};
use crate::waiting;

/// A little more than the lock of a killed shipper lasts.
const LOCK: Duration = Duration::from_secs(4);

/// Remove what Switchyard keeps in Redis, and fill it again from the archive
///
/// For a Postgres or a data folder that was restored to an earlier time, and for a Redis that belonged to another archive.
/// What the archive says is unfinished goes on from there: steps that were in flight are executed again. What was not
/// archived is lost. Only keys of Switchyard under `redis.prefix` are removed; LangGraph checkpoints stay. Every process
/// of Switchyard on this Redis has to be stopped first.
///
/// Without --yes it only says what it would do.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard redis rebuild --redis redis://127.0.0.1 --postgres postgres://switchyard@127.0.0.1/switchyard
  switchyard redis rebuild --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    _stores: StoreArgs,

    /// Do it
    #[arg(long)]
    yes: bool,

    /// Print `{"archive", "formerly", "lost_changes", "removed_keys", "rebuilt_runs"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let admin = stores::admin(settings).await?;
    waiting::for_stores(settings).await?;
    let (mark, unfinished) = look_at_archive(settings).await?;
    let found = until_alone(&admin).await?;
    tell_plan(&found, &mark, unfinished);
    if !args.yes {
        return Err(Failure::refused("nothing was changed").hint("repeat it with --yes to do it"));
    }
    let removed = admin.clear().await?;
    let filled = Stores::open(settings, Role::All).await?;
    let rebuilt = filled.recovered().runs;
    filled.shut_down(Duration::ZERO).await;
    if args.json {
        output::json(&json!({
            "archive": mark.id,
            "formerly": found.bound.map(|bound| bound.id),
            "lost_changes": found.unarchived,
            "removed_keys": removed,
            "rebuilt_runs": rebuilt,
        }))?;
    }
    output::tell(&format!("{removed} keys removed, {rebuilt} runs rebuilt; processes can be started"));
    Ok(())
}

/// Reads the archive's mark and counts its unfinished runs. Closes it again: only one can open a data folder at a time.
async fn look_at_archive(settings: &Settings) -> Result<(ArchiveMark, usize), Failure> {
    let archive = stores::archive(settings).await?;
    Ok((archive.mark().await?, archive.unfinished().await?.len()))
}

/// Refuses if a process uses this Redis. Waits first for the lock of a shipper, which may have been killed, to expire.
async fn until_alone(admin: &RedisAdmin) -> Result<Holdings, Failure> {
    let found = admin.holdings().await?;
    if !found.workers.is_empty() {
        let names = found.workers.join(", ");
        return Err(Failure::refused(format!("workers are alive on this Redis: {names}"))
            .hint("stop every `up`, `api` and `worker` on it first; one that was killed counts as alive for its lease"));
    }
    let Some(lasts) = found.shipping else { return Ok(found) };
    sleep(lasts.min(LOCK)).await;
    let found = admin.holdings().await?;
    match found.shipping {
        None => Ok(found),
        Some(_) => Err(Failure::refused("a process ships this Redis's outbox to its archive")
            .hint("stop every `up`, `api` and `worker` on it first")),
    }
}

fn tell_plan(found: &Holdings, mark: &ArchiveMark, unfinished: usize) {
    let bound = match &found.bound {
        Some(bound) => format!("archive {} at {}, seen at {}", bound.id, bound.location, bound.position),
        None => "no archive".to_owned(),
    };
    output::tell(&format!("Redis belongs to {bound}; it holds {} runs", found.runs));
    output::tell(&format!("this archive is {} at {}, and ends at {}", mark.id, mark.location, mark.position));
    output::tell("  removed  everything of Switchyard under this prefix");
    output::tell(&format!("  lost     {} changes that are not archived", found.unarchived));
    output::tell(&format!(
        "  rebuilt  {unfinished} unfinished runs of this archive, which repeat what was in flight"
    ));
}
