//! `switchyard doctor --salvage NEWDIR`: copies everything intact in a damaged folder to a new one.

use std::path::Path;

use switchyard_host::embedded::{RunFault, Salvaged};

use crate::errors::{Exit, Failure};
use crate::output;
use crate::settings::Settings;
use crate::store;

pub(super) async fn execute(to: &Path, json: bool, settings: &Settings) -> Result<(), Failure> {
    if settings.postgres.is_some() {
        return Err(Failure::usage("--salvage is for data folders; a Postgres is restored from its backup"));
    }
    let salvaged = switchyard_host::embedded::salvage(&settings.data, to, store::notice()).await?;
    if json {
        output::json(&salvaged)?;
    } else {
        show(&salvaged, to)?;
    }
    output::hint(&format!("look at it: switchyard doctor --deep --data {}", to.display()));
    if salvaged.is_whole() { Ok(()) } else { Err(Failure::silent(Exit::Refused)) }
}

fn show(salvaged: &Salvaged, to: &Path) -> Result<(), Failure> {
    let Salvaged { histories, tables, payloads, missing_payloads } = salvaged;
    output::line(&format!(
        "kept      {} whole histories and {payloads} payloads in {}",
        histories.whole,
        to.display()
    ))?;
    for RunFault { run, what, events } in &histories.cut {
        output::line(&format!("cut       {run}: {what}; it goes on after event {events}"))?;
    }
    for RunFault { run, what, .. } in &histories.left_out {
        output::line(&format!("left out  {run}: {what}"))?;
    }
    for (table, why) in tables {
        output::line(&format!("left out  rows of `{table}`: {why}"))?;
    }
    for (payload, holders) in missing_payloads {
        output::line(&format!("missing   {payload}, mentioned by {}", holders.join(", ")))?;
    }
    if !histories.cut.is_empty() || !histories.left_out.is_empty() {
        output::tell(&format!(
            "what could be read behind the damage is in {}: an event a line",
            to.join("left-out").display()
        ));
    }
    Ok(())
}
