//! Chooses the target of a command: server or data folder.
//!
//! A flag beats the environment, the environment beats the settings file, the file beats a default. If the folder ranks
//! higher than the server, the server is used only if it works on that folder; if the server ranks higher, it must
//! answer. If neither is named, the server is used if one answers, else the folder.

use std::time::Duration;

use switchyard_client::{Client, ClientBuilder};
use switchyard_settings::Origin;

use super::Target;
use super::folder::Folder;
use super::server::Server;
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// The time-out of connecting: a running server accepts at once, and the command should not wait for a missing one.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(1);

/// The setting that excludes the server, even if one answers.
pub(crate) const NO_SERVER: &str = "none";

/// The result of probing the server's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerProbe {
    NoAnswer,
    /// A server that works on the configured folder.
    SameFolder,
    /// A server that works on another folder or on a shared store.
    Elsewhere,
    /// A server that refuses to identify itself to this client.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Server,
    /// The server, with a notice, because it does not work on the configured folder.
    ServerElsewhere,
    Folder,
    /// The named server does not answer, or refuses this client.
    NoServer,
    /// A server and a folder were named by sources of the same rank.
    Contradiction,
}

fn choose(server: u8, data: u8, seen: ServerProbe) -> Choice {
    let named = server > 0;
    match seen {
        ServerProbe::SameFolder => Choice::Server,
        _ if server < data => Choice::Folder,
        ServerProbe::Closed => Choice::NoServer,
        ServerProbe::NoAnswer if named => Choice::NoServer,
        ServerProbe::NoAnswer => Choice::Folder,
        ServerProbe::Elsewhere if server > data => Choice::Server,
        ServerProbe::Elsewhere if named => Choice::Contradiction,
        ServerProbe::Elsewhere => Choice::ServerElsewhere,
    }
}

/// Finds the target of a command.
pub(crate) async fn find(settings: &Settings) -> Result<Box<dyn Target>, Failure> {
    let address = settings.server.as_str();
    if address == NO_SERVER {
        return Ok(Box::new(Folder::new(settings.clone())));
    }
    let found = client(settings).tries(1).build()?.server().await;
    let seen = match &found {
        Ok(found) if found.store.is_none() => ServerProbe::Elsewhere,
        Ok(found) if found.store == switchyard_host::embedded::folder_id(&settings.data) => {
            ServerProbe::SameFolder
        }
        Ok(_) => ServerProbe::Elsewhere,
        Err(switchyard_client::Error::Refused(_)) => ServerProbe::Closed,
        Err(_) => ServerProbe::NoAnswer,
    };
    let data = settings.data.display();
    match (choose(rank(settings, "server"), rank(settings, "data"), seen), found) {
        (Choice::Folder, _) => return Ok(Box::new(Folder::new(settings.clone()))),
        (Choice::NoServer, Err(error)) if seen == ServerProbe::Closed => return Err(error.into()),
        (Choice::NoServer, Err(error)) => {
            return Err(Failure::from(error).hint("start one with `switchyard up`, or say --server none"));
        }
        (Choice::Contradiction, _) => {
            return Err(Failure::usage(format!("the server at {address} does not work on {data}"))
                .hint("name one of them: the server or the folder"));
        }
        (Choice::ServerElsewhere, _) if settings.data.exists() => {
            output::tell(&format!("using the server at {address}, whose runs are not those in {data}"));
        }
        (Choice::Server | Choice::ServerElsewhere | Choice::NoServer, _) => {}
    }
    Ok(Box::new(Server::new(client(settings).build()?, settings.clone())))
}

fn client(settings: &Settings) -> ClientBuilder {
    let mut builder = Client::builder(settings.server.as_str()).connect_timeout(CONNECT_WAIT_MAX);
    if let Some(key) = &settings.api_key {
        builder = builder.api_key(key.reveal());
    }
    builder
}

/// The rank of a setting's source: 0 for the default; file, environment and flag rank higher in this order.
pub(crate) fn rank(settings: &Settings, key: &str) -> u8 {
    let origin = settings.loaded().iter().find(|(setting, ..)| setting.key == key).map(|found| found.2);
    match origin {
        Some(Origin::Default) | None => 0,
        Some(Origin::File { .. }) => 1,
        Some(Origin::Env { .. }) => 2,
        Some(Origin::Flag { .. }) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whichever_was_named_more_expressly_counts() {
        for server in 0..=3 {
            for data in 0..=3 {
                assert_eq!(choose(server, data, ServerProbe::SameFolder), Choice::Server, "it is both");
                let elsewhere = choose(server, data, ServerProbe::Elsewhere);
                let no_answer = choose(server, data, ServerProbe::NoAnswer);
                let expected = match (server, data) {
                    (0, 0) => (Choice::ServerElsewhere, Choice::Folder),
                    (server, data) if server < data => (Choice::Folder, Choice::Folder),
                    (server, data) if server > data => (Choice::Server, Choice::NoServer),
                    _ => (Choice::Contradiction, Choice::NoServer),
                };
                assert_eq!((elsewhere, no_answer), expected, "server {server}, data {data}");
            }
        }
        assert_eq!(choose(0, 0, ServerProbe::Closed), Choice::NoServer, "it must not be passed by");
        assert_eq!(choose(0, 3, ServerProbe::Closed), Choice::Folder);
    }
}
