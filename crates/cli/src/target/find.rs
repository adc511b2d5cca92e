//! Server or folder?
//!
//! Whichever was named more expressly counts: a flag more than the environment, that more than the settings file, that
//! more than a default. A server that is less express than the folder is used only if it works on that very folder; a
//! server that is more express has to be there. With neither named, the server comes first, if one answers.

use std::time::Duration;

use switchyard_client::{Client, ClientBuilder};
use switchyard_settings::Origin;

use super::Target;
use super::folder::Folder;
use super::server::Server;
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// A running server accepts at once; the command should not wait for one that is not there.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(1);

/// The setting that means: no server, even if one answers.
pub(crate) const NO_SERVER: &str = "none";

/// What is at the server's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerProbe {
    NoAnswer,
    /// A server that works on the folder that is set.
    SameFolder,
    /// A server that works on something else.
    Elsewhere,
    /// A server that says nothing about itself to us.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Server,
    /// The user is told, because the folder is another one.
    ServerElsewhere,
    Folder,
    /// What was named is not there, or not for us.
    NoServer,
    /// Two places were named, equally expressly.
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

/// Finds out where a command acts.
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

/// How expressly a setting was made.
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
