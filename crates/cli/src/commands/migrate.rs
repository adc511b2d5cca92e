//! `switchyard migrate`

use switchyard_archive_postgres::migrate;

use crate::errors::Failure;
use crate::flags::StoreArgs;
use crate::output;
use crate::settings::Settings;
use crate::stores;

/// Bring the schema in Postgres up to date
///
/// `up`, `api` and `worker` do it at start as well; this is for those who let only one account change a schema.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  switchyard migrate --postgres postgres://switchyard@127.0.0.1/switchyard")]
pub(crate) struct Args {
    #[command(flatten)]
    _stores: StoreArgs,

    /// Print `{"steps"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let Some(target) = stores::postgres(settings)? else {
        return Err(Failure::usage("there is no Postgres to migrate")
            .hint("name it with --postgres URL or SWITCHYARD_POSTGRES"));
    };
    let steps = migrate(&target).await?;
    if args.json {
        output::json(&serde_json::json!({ "steps": steps }))?;
    }
    match steps {
        0 => output::tell(&format!("{target} was up to date")),
        steps => output::tell(&format!("{target} is up to date: {steps} steps")),
    }
    Ok(())
}
