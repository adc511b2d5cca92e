//! `switchyard keys …`

use switchyard_api::ApiKeyView;
use switchyard_core::OperationId;
use switchyard_runtime::{ApiKeys, ids};

use crate::errors::Failure;
use crate::flags::StoreArgs;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::Settings;
use crate::stores;
use crate::target::{self, MadeKey, Target};

/// Say who may use the API
///
/// Acts on the server, like every command; with --server none on the data folder or the Postgres itself, also while a
/// server runs on it: that is for an operator who has lost every key. A new key counts when the command returns, also the first,
/// after which every request needs one, on a loopback address as well. A revoked key is refused within a second.
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

    #[command(flatten)]
    operation: OperationArgs,

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

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"id", "revoked"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Create(args) => create(&args, &find(settings, args.operation.id()).await?).await,
        Command::List(args) => list(&args, &find(settings, None).await?).await,
        Command::Revoke(args) => revoke(&args, &find(settings, args.operation.id()).await?).await,
    }
}

/// Access to the keys: through a target, or directly in Postgres.
enum Keys {
    Served(Box<dyn Target>),
    /// Directly in Postgres, without a server. `operation` is the id of the command's one change.
    Archive {
        keys: ApiKeys,
        operation: OperationId,
    },
}

/// Chooses Postgres directly if its setting outranks that of the server or `--server none` is given; otherwise the
/// target of any command.
async fn find(settings: &Settings, operation: Option<OperationId>) -> Result<Keys, Failure> {
    let (server, postgres) = (target::rank(settings, "server"), target::rank(settings, "postgres.url"));
    let served = settings.server.as_str() != target::NO_SERVER;
    if served && server > 0 && server == postgres {
        let why = format!("both a Postgres and the server at {} are named", settings.server.as_str());
        return Err(Failure::usage(why).hint("--server none acts on Postgres itself"));
    }
    if (!served || postgres > server)
        && let Some(keys) = stores::keys(settings).await?
    {
        return Ok(Keys::Archive { keys, operation: operation.unwrap_or_else(ids::operation_id) });
    }
    let mut target = target::find(settings).await?;
    if let Some(operation) = operation {
        target.repeat(operation);
    }
    Ok(Keys::Served(target))
}

impl Keys {
    async fn all(&self) -> Result<Vec<ApiKeyView>, Failure> {
        match self {
            Self::Served(target) => target.keys().await,
            Self::Archive { keys, .. } => Ok(keys.all().await?.into_iter().map(Into::into).collect()),
        }
    }

    async fn create(&self, name: &str) -> Result<MadeKey, Failure> {
        match self {
            Self::Served(target) => target.create_key(name).await,
            Self::Archive { keys, operation } => target::create_key(keys, operation, name).await,
        }
    }

    async fn revoke(&self, id: &str) -> Result<(), Failure> {
        match self {
            Self::Served(target) => target.revoke_key(id).await,
            Self::Archive { keys, operation } => target::revoke_key(keys, operation, id).await,
        }
    }
}

async fn create(args: &CreateArgs, keys: &Keys) -> Result<(), Failure> {
    if args.name.trim().is_empty() || args.name.chars().any(char::is_control) {
        return Err(Failure::usage("the name is empty or not printable"));
    }
    let MadeKey { record, text } = keys.create(&args.name).await?;
    let Some(text) = text else {
        let why = format!("key {} was made before, and its text is kept nowhere", record.id);
        let revoke = format!("switchyard keys revoke {}", record.id);
        return Err(Failure::refused(why).hint(format!("revoke it, and make another: {revoke}")));
    };
    if args.json {
        let mut document = serde_json::json!(record);
        document["key"] = text.to_string().into();
        return Ok(output::json(&document)?);
    }
    output::line(&text.to_string())?;
    output::tell(&format!("{}: key {}, which is shown this once", record.name, record.id));
    output::hint("send it as `Authorization: Bearer …`; every request to the API needs a key now");
    Ok(())
}

async fn list(args: &ListArgs, keys: &Keys) -> Result<(), Failure> {
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

fn row(record: &ApiKeyView) -> [String; 4] {
    [
        record.id.clone(),
        record.name.clone(),
        output::moment(record.created_at),
        output::or_dash(record.revoked_at.map(output::moment)),
    ]
}

async fn revoke(args: &RevokeArgs, keys: &Keys) -> Result<(), Failure> {
    let id = &args.id;
    // List the keys before revoking: this command may use the revoked key itself.
    let before = keys.all().await?;
    let live = |key: &&ApiKeyView| key.revoked_at.is_none();
    let revoked = before.iter().filter(live).any(|key| key.id == *id);
    let others = before.iter().filter(live).any(|key| key.id != *id);
    keys.revoke(id).await?;
    if args.json {
        output::json(&serde_json::json!({ "id": id, "revoked": revoked }))?;
    }
    let word = if revoked { "revoked" } else { "was revoked before" };
    output::tell(&format!("{id}: {word}"));
    if !others {
        output::hint(
            "no key is left: the API refuses every request until you make one (`--server none`, or `up --no-auth`)",
        );
    }
    Ok(())
}
