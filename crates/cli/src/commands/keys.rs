//! `switchyard keys …`

use switchyard_runtime::ApiKeys;
use switchyard_store::ApiKeyRecord;

use crate::errors::Failure;
use crate::flags::StoreArgs;
use crate::output;
use crate::settings::Settings;
use crate::station;
use crate::store;

/// Say who may use the API
///
/// Works while a server runs, too: a new key is valid at once, and a revoked one lets nobody in after a second. Once a
/// key was made, every request needs one, on a loopback address as well.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Make a key and print it; it is shown this once
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard keys create ci\n  \
    curl -H \"Authorization: Bearer $SWITCHYARD_API_KEY\" http://127.0.0.1:7070/v1/runs")]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    _stores: StoreArgs,

    /// Whose it is or what for; histories show it
    name: String,

    /// Print the key with its id as JSON
    #[arg(long)]
    json: bool,
}

/// List the keys that were ever made, without their secrets
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard keys list")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    _stores: StoreArgs,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Revoke a key
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard keys revoke 0123456789abcdef")]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    _stores: StoreArgs,

    /// The key's id, as `keys list` shows it
    id: String,

    /// Print `{"id", "revoked"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    let keys = match (station::keys(settings).await?, &command) {
        (Some(keys), _) => keys,
        (None, Command::Create(_)) => switchyard_embedded::keys(&settings.data)?,
        (None, _) => store::existing_keys(settings)?,
    };
    match command {
        Command::Create(args) => create(&args, &keys).await,
        Command::List(args) => list(&args, &keys).await,
        Command::Revoke(args) => revoke(&args, &keys).await,
    }
}

async fn create(args: &CreateArgs, keys: &ApiKeys) -> Result<(), Failure> {
    if args.name.trim().is_empty() || args.name.chars().any(char::is_control) {
        return Err(Failure::usage("the name is empty or not printable"));
    }
    let made = keys.create(&args.name).await?;
    if args.json {
        let mut document = serde_json::json!(made.record);
        document["key"] = made.text.into();
        return Ok(output::json(&document)?);
    }
    output::line(&made.text)?;
    output::tell(&format!("{}: key {}, which is shown this once", made.record.name, made.record.id));
    output::hint("send it as `Authorization: Bearer …`; every request to the API needs a key now");
    Ok(())
}

async fn list(args: &ListArgs, keys: &ApiKeys) -> Result<(), Failure> {
    let records = keys.all().await?;
    if args.json {
        return Ok(output::json(&records)?);
    }
    if records.is_empty() {
        output::tell("no keys");
        return Ok(());
    }
    Ok(output::table(["KEY", "NAME", "CREATED", "REVOKED"], records.iter().map(row).collect())?)
}

fn row(record: &ApiKeyRecord) -> [String; 4] {
    [
        record.id.clone(),
        record.name.clone(),
        output::moment(record.created_at),
        output::or_dash(record.revoked_at.map(output::moment)),
    ]
}

async fn revoke(args: &RevokeArgs, keys: &ApiKeys) -> Result<(), Failure> {
    let id = &args.id;
    let revoked = keys.revoke(id).await?;
    if args.json {
        output::json(&serde_json::json!({ "id": id, "revoked": revoked }))?;
    }
    let word = if revoked { "revoked" } else { "was revoked before" };
    output::tell(&format!("{id}: {word}"));
    if !keys.any_live().await? {
        output::hint("no key is left: nobody can use the API until you make one (or start `up --no-auth`)");
    }
    Ok(())
}
