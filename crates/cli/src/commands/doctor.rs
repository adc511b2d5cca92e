//! `switchyard doctor`

mod deep;
mod salvage;

use std::path::PathBuf;

use serde_json::json;
use switchyard_archive_postgres::PostgresArchive;
use switchyard_store::{Check, Health, Journal};
use switchyard_store_redis::RedisAdmin;

use crate::errors::{Exit, Failure};
use crate::flags::StoreArgs;
use crate::output;
use crate::settings::Settings;
use crate::store;
use crate::stores;

/// Look whether everything that runs stand on is in order, and say what to do where it is not
///
/// Of Redis: version, role, eviction, memory, append-only file, clock, scripts, rights, who reads tasks, what waits for the
/// archive and why, whether it belongs to this archive. Of Postgres: durability and schema. Of a data folder: its lock, the archive's integrity, the disk. Of
/// Kubernetes, if pods are asked for: the list. Nothing is changed; what it writes to try its rights is gone
/// afterwards.
///
/// With --deep every history is gone through as well: checksums, gaps, replay, payloads. It takes as long as that takes, and
/// works on a folder that does not open.
///
/// Exits with 0 if everything works, warnings included, and with 1 if something does not.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard doctor
  switchyard doctor --redis redis://127.0.0.1 --postgres postgres://switchyard@127.0.0.1/switchyard
  switchyard doctor --deep
  switchyard doctor --salvage ./new-data
  switchyard doctor --json")]
pub(crate) struct Args {
    #[command(flatten)]
    _stores: StoreArgs,

    /// Go through every history, event by event
    #[arg(long)]
    deep: bool,

    /// Make a new folder with everything that is whole in a damaged one, which stays as it is. A history with a hole goes
    /// on from before the hole; one that had ended is left out, and what can be read of it is kept as text
    #[arg(long, value_name = "NEWDIR", conflicts_with = "deep")]
    salvage: Option<PathBuf>,

    /// Print `{"health", "checks"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    if let Some(to) = &args.salvage {
        return salvage::execute(to, args.json, settings).await;
    }
    let checks = examine(settings, args.deep).await?;
    let health = checks.iter().map(|check| check.health).max_by_key(|health| *health as u8);
    let health = health.unwrap_or(Health::Ok);
    if args.json {
        output::json(&json!({ "health": health, "checks": checks }))?;
    } else {
        show(&checks)?;
    }
    let count = |health| checks.iter().filter(|check| check.health == health).count();
    output::tell(&format!(
        "{} ok, {} warnings, {} failed",
        count(Health::Ok),
        count(Health::Warning),
        count(Health::Failed)
    ));
    if health == Health::Failed { Err(Failure::silent(Exit::Refused)) } else { Ok(()) }
}

async fn examine(settings: &Settings, deep: bool) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    if settings.redis.is_some() {
        let rounds = stores::monitor_settings(settings);
        match stores::admin(settings).await {
            Ok(admin) => {
                let stuck_after = settings.stores_stuck_after;
                checks.extend(admin.examine(rounds.cleanup.idle_min, rounds.long, stuck_after).await);
                checks.extend(belongs(&admin, settings).await);
            }
            Err(failure) => checks.push(Check::failed(
                "redis",
                failure
                    .problems()
                    .into_iter()
                    .map(|(_, problem)| problem.message)
                    .collect::<Vec<_>>()
                    .join("; "),
                "Redis 7 or newer, or Valkey, at the address in REDIS_URL",
            )),
        }
    }
    match stores::postgres(settings)? {
        Some(target) => {
            checks.extend(switchyard_archive_postgres::examine(&target).await);
            if deep {
                checks.extend(deep::shared(settings).await?);
            }
        }
        None => {
            let (data, notice) = (settings.data.clone(), store::notice());
            let looking =
                tokio::task::spawn_blocking(move || switchyard_host::embedded::examine(&data, deep, &notice));
            let found = looking.await.unwrap_or_default();
            let archive = found.iter().find(|check| check.name == "archive").map(|check| check.health);
            checks.extend(found);
            if deep {
                checks.extend(deep::folder(settings, archive).await);
            }
        }
    }
    if settings.pod_selector.is_some() {
        checks.push(pods(settings).await);
    }
    Ok(checks)
}

/// Checks whether Redis and the archive belong together. Other checks report problems of the archive itself.
async fn belongs(admin: &RedisAdmin, settings: &Settings) -> Option<Check> {
    let mark = match stores::postgres(settings).ok()? {
        Some(target) => PostgresArchive::open(target).await.ok()?.mark().await.ok()?,
        None => switchyard_host::embedded::peek(&settings.data).ok()?.mark().await.ok()?,
    };
    Some(admin.examine_archive(&mark).await)
}

async fn pods(settings: &Settings) -> Check {
    let advice = "a service account that may `list` `pods` in that namespace, or KUBECONFIG";
    let listed = match stores::pods(settings).await {
        Ok(Some(pods)) => pods.names().await,
        Ok(None) => return Check::ok("kubernetes", "not asked"),
        Err(_) => Err("there is no Kubernetes here".to_owned()),
    };
    match listed {
        Ok(names) if names.is_empty() => Check::warning(
            "kubernetes",
            "no pod has these labels",
            "compare kubernetes.pod_selector with the deployment",
        ),
        Ok(names) => Check::ok("kubernetes", format!("{} pods of workers", names.len())),
        Err(why) => Check::failed("kubernetes", why, advice),
    }
}

fn show(checks: &[Check]) -> Result<(), Failure> {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in checks {
        let health = match check.health {
            Health::Ok => "ok",
            Health::Warning => "warning",
            Health::Failed => "failed",
        };
        output::line(&format!("{health:<8} {:<width$}  {}", check.name, check.found))?;
        if let Some(advice) = &check.advice {
            output::line(&format!("{:9}{:<width$}  {advice}", "", ""))?;
        }
    }
    Ok(())
}
