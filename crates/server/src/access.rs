//! Authentication: by API key; as long as no key exists, every program on this machine is admitted.

use std::net::IpAddr;

use axum::extract::{MatchedPath, Request};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use switchyard_runtime::Principal;

use crate::ServerState;
use crate::cors;
use crate::problem::Problem;

/// Which clients a server admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Every client until the first API key is created; then only holders of keys, even if all keys are revoked.
    #[default]
    UntilKeysExist,
    /// Holders of API keys. A server that other machines can reach always uses this.
    Keys,
    /// Every client.
    Everyone,
}

/// Routes that need no key, for supervisors and tools. They reveal nothing about runs.
pub(crate) const PUBLIC: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];

/// The prefix of a key in `Sec-WebSocket-Protocol`, the only header of a WebSocket that a browser lets a page set. The
/// key is not in the URL, because proxies log URLs.
const PROTOCOL_PREFIX: &str = "bearer.";

/// Authenticates a request. Routes get the caller as `Extension<Principal>`. The server does not check the host name of
/// requests with a key.
pub(crate) async fn enter(state: &ServerState, request: &mut Request) -> Result<(), Problem> {
    named_once(request.headers())?;
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if route.is_some_and(|route| PUBLIC.contains(&route)) {
        return Ok(());
    }
    let keys = state.engine.keys();
    let wanted = match state.access {
        Access::Keys => true,
        Access::Everyone => false,
        Access::UntilKeysExist => keys.any().await?,
    };
    if !wanted {
        from_this_machine(state, request)?;
        request.extensions_mut().insert(Principal::anonymous());
        return Ok(());
    }
    let given = key_of(request.headers()).ok_or_else(no_key)?;
    let key = keys.check(given).await?.ok_or_else(wrong_key)?;
    request.extensions_mut().insert(Principal::of_key(&key));
    Ok(())
}

fn key_of(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, key) = value.to_str().ok()?.trim().split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then_some(key.trim());
    }
    let protocols = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    protocols.split(',').find_map(|protocol| protocol.trim().strip_prefix(PROTOCOL_PREFIX))
}

fn no_key() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "no_key", "this server wants an API key")
        .hint("send it as `Authorization: Bearer swk_…`; `switchyard keys create NAME` makes one")
        .challenge("Bearer realm=\"switchyard\"")
}

fn wrong_key() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "wrong_key", "this is not a key of this server, or it was revoked")
        .hint("`switchyard keys list` shows which keys there are")
        .challenge("Bearer realm=\"switchyard\", error=\"invalid_token\"")
}

/// Rejects repeated `Host` and `Origin` headers: a proxy may have checked the other one.
fn named_once(headers: &HeaderMap) -> Result<(), Problem> {
    for name in [header::HOST, header::ORIGIN] {
        if headers.get_all(&name).iter().count() > 1 {
            let detail = format!("the request has more than one `{name}` header");
            return Err(Problem::bad_request("repeated_header", detail));
        }
    }
    Ok(())
}

/// Rejects requests from web pages of other origins. A server without keys listens on loopback only. A request with a
/// foreign host name comes from a page whose name resolves to this machine (DNS rebinding), one with a foreign origin
/// from a page that another program serves; neither may control this server. With keys the check is not needed: such
/// a page has no key.
fn from_this_machine(state: &ServerState, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let host = text(headers.get(header::HOST));
    let asked = request.uri().authority().map(Authority::as_str);
    if let Some(name) = host.into_iter().chain(asked).find(|name| !is_loopback(name)) {
        return Err(foreign_host(name));
    }
    match text(headers.get(header::ORIGIN)) {
        Some(origin) if !is_own(origin, host) && cors::listed(&state.cors_origins, headers).is_none() => {
            Err(foreign_origin(origin))
        }
        _ => Ok(()),
    }
}

fn text(value: Option<&HeaderValue>) -> Option<&str> {
    value.map(|value| value.to_str().unwrap_or("?"))
}

/// Whether the origin has the same host name and port as the request.
fn is_own(origin: &str, host: Option<&str>) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let usual_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let bare = |authority: &str| authority.strip_suffix(usual_port).unwrap_or(authority).to_ascii_lowercase();
    host.is_some_and(|host| bare(host) == bare(authority))
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(host, _)| host),
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn foreign_host(name: &str) -> Problem {
    let shown: String = name.chars().take(100).collect();
    Problem::new(StatusCode::FORBIDDEN, "foreign_host", format!("`{shown}` is not a name of this machine"))
        .hint(
            "use http://127.0.0.1 or http://localhost with the server's port, or make an API key and send it",
        )
}

fn foreign_origin(origin: &str) -> Problem {
    let shown: String = origin.chars().take(100).collect();
    let detail = format!("pages of `{shown}` may not use this server");
    Problem::new(StatusCode::FORBIDDEN, "foreign_origin", detail)
        .hint("name the origin in `http.cors_origins`, or make an API key and send it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for own in ["localhost:7070", "LocalHost", "127.0.0.1:7070", "127.9.9.9", "[::1]:7070"] {
            assert!(is_loopback(own), "{own}");
        }
        for foreign in ["evil.example:7070", "localhost.evil.example", "null", "10.0.0.1", "[::2]", ""] {
            assert!(!is_loopback(foreign), "{foreign}");
        }
    }

    #[test]
    fn an_origin_is_the_servers_own_if_it_has_its_name_and_port() {
        for (origin, host) in [
            ("http://localhost:7070", "localhost:7070"),
            ("http://LOCALHOST:7070", "localhost:7070"),
            ("http://[::1]:7070", "[::1]:7070"),
            ("http://localhost", "localhost:80"),
            ("https://localhost", "localhost"),
        ] {
            assert!(is_own(origin, Some(host)), "{origin} {host}");
        }
        for (origin, host) in [
            ("http://localhost:3000", "localhost:7070"),
            ("http://127.0.0.1:7070", "localhost:7070"),
            ("http://localhost", "localhost:7070"),
            ("null", "localhost:7070"),
            ("file://localhost:7070", "localhost:7070"),
            ("localhost:7070", "localhost:7070"),
        ] {
            assert!(!is_own(origin, Some(host)), "{origin} {host}");
        }
        assert!(!is_own("http://localhost:7070", None));
    }

    #[test]
    fn a_key_is_found_where_it_may_be() {
        for (name, value, expected) in [
            ("authorization", "Bearer swk_1_2", Some("swk_1_2")),
            ("authorization", "bearer  swk_1_2 ", Some("swk_1_2")),
            ("authorization", "Basic swk_1_2", None),
            ("authorization", "swk_1_2", None),
            ("sec-websocket-protocol", "switchyard.v1, bearer.swk_1_2", Some("swk_1_2")),
            ("sec-websocket-protocol", "switchyard.v1", None),
            ("x-api-key", "swk_1_2", None),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            assert_eq!(key_of(&headers), expected, "{name}: {value}");
        }
    }
}
