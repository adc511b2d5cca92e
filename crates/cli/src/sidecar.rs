//! Tells the Envoy sidecar to quit: it does not exit by itself, and a pod ends only when all of its containers have.

use std::time::Duration;

use crate::output;
use crate::settings::Settings;

/// The time-out of the request; short, because the sidecar is on the same machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the sidecar to quit, as the last action of the process. An error is reported and otherwise ignored.
pub(crate) async fn tell_to_quit(settings: &Settings) {
    let Some(url) = settings.envoy_quit_url.as_ref().map(|url| url.as_str()).filter(|url| *url != "none")
    else {
        return;
    };
    if let Err(why) = post(url).await {
        output::tell(&format!("warning: the sidecar at {url} could not be told to quit: {why}"));
    }
}

async fn post(url: &str) -> Result<(), String> {
    let client = switchyard_runtime::kinds::http_client().no_proxy().timeout(PATIENCE).build();
    let client = client.map_err(|error| error.to_string())?;
    let answer = client.post(url).send().await.map_err(|error| error.without_url().to_string())?;
    if answer.status().is_success() { Ok(()) } else { Err(format!("it answered {}", answer.status())) }
}
