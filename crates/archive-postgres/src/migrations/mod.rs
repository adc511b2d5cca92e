//! Schema migrations. A step is never edited after a release: a new one is added.

use switchyard_store::{Check, StoreError};
use tokio_postgres::{Client, Error};

use crate::Target;
use crate::error::{cannot_connect, sentence};

/// `MIGRATIONS[n]` migrates from version `n` to version `n + 1`.
const MIGRATIONS: &[&str] = &[
    include_str!("0001_history.sql"),
    include_str!("0002_dead_letters.sql"),
    include_str!("0003_archive_mark.sql"),
    include_str!("0004_dead_letter_excerpts.sql"),
    include_str!("0005_event_checksums.sql"),
    include_str!("0006_operations.sql"),
    include_str!("0007_run_operations.sql"),
    include_str!("0008_run_filters.sql"),
    include_str!("0009_bulk_jobs.sql"),
    include_str!("0010_schedule_starts.sql"),
];

/// Creates the schema and its tables, or migrates them to the version this program knows. Any number of processes may
/// do this at once. Returns the number of steps that were applied.
pub async fn migrate(target: &Target) -> Result<usize, StoreError> {
    let client = connect(target).await?;
    let unable = |e: Error| {
        StoreError::unavailable(format!(
            "cannot bring schema `{}` of {target} up to date: {}",
            target.schema,
            sentence(&e)
        ))
    };
    // Other processes that migrate this schema wait here until the end of the transaction.
    let lock =
        format!("SELECT pg_advisory_xact_lock(hashtextextended('switchyard migrate {}', 0))", target.schema);
    client.batch_execute(&format!("BEGIN; {lock}")).await.map_err(unable)?;
    let version = known_version(&client, target).await?;
    if version.is_none() {
        make_schema(&client, target).await.map_err(unable)?;
    }
    let version = version.unwrap_or(0);
    for (step, sql) in MIGRATIONS.iter().enumerate().skip(version) {
        client.batch_execute(sql).await.map_err(unable)?;
        let record = format!("INSERT INTO migrations (version) VALUES ({})", step + 1);
        client.batch_execute(&record).await.map_err(unable)?;
    }
    client.batch_execute("COMMIT").await.map_err(unable)?;
    Ok(MIGRATIONS.len() - version)
}

/// Drops the schema with everything in it: for temporary schemas.
pub async fn remove(target: &Target) -> Result<(), StoreError> {
    let client = connect(target).await?;
    let removed = client.batch_execute(&format!("DROP SCHEMA IF EXISTS {} CASCADE", target.schema)).await;
    removed.map_err(|e| {
        let message = format!("cannot remove schema `{}` of {target}: {}", target.schema, sentence(&e));
        StoreError::unavailable(message)
    })
}

/// Refuses a schema that has another version than this program.
pub(crate) async fn check_current(target: &Target) -> Result<(), StoreError> {
    let client = connect(target).await?;
    let version = known_version(&client, target).await?.unwrap_or(0);
    if version < MIGRATIONS.len() {
        return Err(StoreError::unavailable(format!(
            "schema `{}` of {target} has version {version}, this program needs version {}: run `switchyard migrate`",
            target.schema,
            MIGRATIONS.len()
        )));
    }
    Ok(())
}

/// Checks whether a Postgres server is suitable.
pub async fn examine(target: &Target) -> Vec<Check> {
    let client = match connect(target).await {
        Ok(client) => client,
        Err(error) => {
            return vec![Check::failed("postgres", error, "is it running, and may this account come in?")];
        }
    };
    let mut checks = vec![durability(&client, target).await];
    checks.push(match known_version(&client, target).await {
        Ok(Some(version)) if version == MIGRATIONS.len() => {
            Check::ok("postgres schema", format!("`{}`, version {version}", target.schema))
        }
        Ok(version) => {
            let found = match version {
                Some(version) => format!("version {version} of {}", MIGRATIONS.len()),
                None => format!("there is no schema `{}`", target.schema),
            };
            Check::warning(
                "postgres schema",
                found,
                "`switchyard migrate`; `up`, `api` and `worker` do it at start",
            )
        }
        Err(error) => Check::refused("postgres schema", error),
    });
    checks
}

/// Checks that committed data survives a crash of the server.
async fn durability(client: &Client, target: &Target) -> Check {
    const ASK: &str = "SELECT current_setting('server_version'), current_setting('fsync'), \
                       current_setting('synchronous_commit'), pg_is_in_recovery()";
    match client.query_one(ASK, &[]).await {
        Ok(row) => {
            let (version, fsync, commit): (String, String, String) = (row.get(0), row.get(1), row.get(2));
            let found = format!("{target}, version {version}, fsync {fsync}, synchronous_commit {commit}");
            if row.get::<_, bool>(3) {
                return Check::failed("postgres", found, "it is a standby: name the primary");
            }
            match (&*fsync, &*commit) {
                ("on", "off") => {
                    let advice = "ALTER SYSTEM SET synchronous_commit = on: what was accepted could be lost";
                    Check::failed("postgres", found, advice)
                }
                ("on", _) => Check::ok("postgres", found),
                _ => Check::failed(
                    "postgres",
                    found,
                    "ALTER SYSTEM SET fsync = on: what was accepted could be lost",
                ),
            }
        }
        Err(error) => Check::failed("postgres", sentence(&error), "may this account read?"),
    }
}

/// Opens a short-lived connection.
async fn connect(target: &Target) -> Result<Client, StoreError> {
    let (client, connection) =
        target.config.connect(target.connector()?).await.map_err(|e| cannot_connect(target, &e))?;
    tokio::spawn(connection);
    Ok(client)
}

/// The version of the schema; `None` if there are no tables of ours yet.
async fn known_version(client: &Client, target: &Target) -> Result<Option<usize>, StoreError> {
    let unread = |e: Error| StoreError::unavailable(format!("cannot read from {target}: {}", sentence(&e)));
    let encoding: String =
        client.query_one("SELECT current_setting('server_encoding')", &[]).await.map_err(unread)?.get(0);
    if encoding != "UTF8" {
        let message = format!("{target} keeps text as {encoding}, and Switchyard needs UTF8");
        return Err(StoreError::unavailable(message));
    }
    let table = format!("{}.migrations", target.schema);
    let there = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await.map_err(unread)?;
    if !there.get::<_, bool>(0) {
        return Ok(None);
    }
    let newest =
        client.query_one("SELECT coalesce(max(version), 0) FROM migrations", &[]).await.map_err(unread)?;
    let version = usize::try_from(newest.get::<_, i32>(0)).unwrap_or(usize::MAX);
    if version > MIGRATIONS.len() {
        return Err(StoreError::unavailable(format!(
            "schema `{}` of {target} has version {version}, this program knows versions up to {}: use a newer switchyard",
            target.schema,
            MIGRATIONS.len()
        )));
    }
    Ok(Some(version))
}

async fn make_schema(client: &Client, target: &Target) -> Result<(), Error> {
    // Checked first, because CREATE SCHEMA IF NOT EXISTS needs the permission to create even if the schema exists.
    let there = client.query_opt("SELECT 1 FROM pg_namespace WHERE nspname = $1", &[&target.schema]).await?;
    if there.is_none() {
        client.batch_execute(&format!("CREATE SCHEMA {}", target.schema)).await?;
    }
    client
        .batch_execute(
            "CREATE TABLE migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
        )
        .await
}
