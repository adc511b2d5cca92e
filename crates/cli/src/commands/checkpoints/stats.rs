//! `switchyard checkpoints stats`

use switchyard_core::Timestamp;

use super::{Target, size};
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// Show counts, sizes and TTL coverage of all threads of a namespace
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard checkpoints stats --json")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Target,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let stats = args.place.open(settings)?.stats().await?;
    if args.json {
        return Ok(output::json(&stats)?);
    }
    let moment =
        |at_ms: Option<i64>| output::or_dash(at_ms.map(|at| output::moment(Timestamp::from_millis(at))));
    let facts = [
        ("threads", stats.threads.to_string()),
        ("checkpoints", stats.checkpoints.to_string()),
        ("channel values", stats.values.to_string()),
        ("pending tasks", stats.tasks.to_string()),
        ("size", size(stats.bytes)),
        (
            "largest thread",
            stats
                .largest_thread
                .map_or("-".to_owned(), |thread| format!("{thread} ({})", size(stats.largest_bytes))),
        ),
        ("oldest write", moment(stats.oldest_at_ms)),
        ("newest write", moment(stats.newest_at_ms)),
        ("with TTL", stats.threads_with_ttl.to_string()),
        ("without TTL", stats.threads_without_ttl.to_string()),
        ("uneven TTL", stats.threads_with_uneven_ttl.to_string()),
    ];
    for (name, value) in facts {
        output::line(&format!("{name:<15} {value}"))?;
    }
    Ok(())
}
