//! The address of a Redis: a URL.
//!
//! - `redis://`, `rediss://` (TLS), `redis+unix:///path/to/socket`: a server, or any node of a cluster
//! - `redis+cluster://host:port,host:port`, `rediss+cluster://`: a cluster, by several of its nodes
//! - `redis+sentinel://host:port,host:port/service[/db]`, `rediss+sentinel://`: the master that the sentinels name
//!
//! User and password are those of Redis; `sentinel_username` and `sentinel_password` in the query are the sentinels'.
//! With TLS, `ssl_ca_certs`, `ssl_certfile` and `ssl_keyfile` in the query are paths of PEM files, as in redis-py.

use percent_encoding::percent_decode_str;
use redis::io::tcp::TcpSettings;
use redis::{ConnectionInfo, IntoConnectionInfo, TlsCertificates};

use crate::failure::detail;
use crate::sentinel::Sentinel;
use crate::tls;

const SCHEMES: &str = "redis://, rediss://, redis+unix://, redis+cluster:// or redis+sentinel://";

/// A parsed URL. Its `Display` leaves out user, password and query.
#[derive(Clone)]
pub struct Address {
    location: Location,
    certificates: Option<TlsCertificates>,
    shown: String,
}

/// The servers that an address names.
#[derive(Clone, Debug)]
pub enum Location {
    Server(ConnectionInfo),
    Cluster(Vec<ConnectionInfo>),
    Sentinel(Sentinel),
}

/// The reason why a URL is not an address. Never contains a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(pub(crate) String);

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Address({})", self.shown)
    }
}

impl Address {
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let parts = UrlParts::split(url)?;
        let certificates = tls::certificates(&parts)?;
        let location = match parts.kind {
            Kind::Server => Location::Server(parts.server(parts.hosts)?),
            Kind::Cluster => {
                let nodes = parts.hosts.split(',').map(|host| parts.server(host));
                Location::Cluster(nodes.collect::<Result<_, _>>()?)
            }
            Kind::Sentinel => Location::Sentinel(Sentinel::parse(&parts)?),
        };
        Ok(Self { location, certificates, shown: parts.shown() })
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn certificates(&self) -> Option<&TlsCertificates> {
        self.certificates.as_ref()
    }

    /// The server's name for messages: `host:port`, the path of a socket, or a service and its sentinels.
    pub fn server_name(&self) -> String {
        match &self.location {
            Location::Server(info) => info.addr().to_string(),
            Location::Cluster(nodes) => {
                nodes.iter().map(|node| node.addr().to_string()).collect::<Vec<_>>().join(",")
            }
            Location::Sentinel(sentinel) => sentinel.to_string(),
        }
    }
}

/// TCP settings without Nagle's algorithm: callers share a connection, and a small call must not wait for an
/// acknowledgement.
pub(crate) fn tcp_settings() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Server,
    Cluster,
    Sentinel,
}

/// The parts of a URL. URL parsers do not accept several hosts.
pub(crate) struct UrlParts<'a> {
    kind: Kind,
    scheme: &'a str,
    pub(crate) login: Option<&'a str>,
    pub(crate) hosts: &'a str,
    pub(crate) path: &'a str,
    /// Pairs `name=value`, still percent-encoded.
    query: Vec<&'a str>,
}

impl<'a> UrlParts<'a> {
    fn split(url: &'a str) -> Result<Self, AddressError> {
        let expected = || AddressError(format!("the Redis URL must begin with {SCHEMES}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(expected)?;
        let (kind, scheme) = match scheme {
            "redis" | "rediss" | "unix" | "redis+unix" => (Kind::Server, scheme),
            "redis+cluster" => (Kind::Cluster, "redis"),
            "rediss+cluster" => (Kind::Cluster, "rediss"),
            "redis+sentinel" => (Kind::Sentinel, "redis"),
            "rediss+sentinel" => (Kind::Sentinel, "rediss"),
            _ => return Err(expected()),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let query = query.split('&').filter(|pair| !pair.is_empty()).collect();
        if scheme.ends_with("unix") {
            return Ok(Self { kind, scheme, login: None, hosts: rest, path: "", query });
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        Ok(Self { kind, scheme, login, hosts, path, query })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == "rediss"
    }

    pub(crate) fn shown(&self) -> String {
        let kind = match self.kind {
            Kind::Server => "",
            Kind::Cluster => "+cluster",
            Kind::Sentinel => "+sentinel",
        };
        format!("{}{kind}://{}{}", self.scheme, self.hosts, self.path)
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = self.query.iter().filter_map(|pair| pair.split_once('='));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| decoded(value))
    }

    /// The settings of one server, without the parameters that only this crate reads.
    fn server(&self, host: &str) -> Result<ConnectionInfo, AddressError> {
        let login = self.login.map(|login| format!("{login}@")).unwrap_or_default();
        let kept: Vec<&str> = self.query.iter().copied().filter(|pair| !pair.starts_with("ssl_")).collect();
        let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
        let url = format!("{}://{login}{host}{}{query}", self.scheme, self.path);
        let info = url.into_connection_info().map_err(|error| {
            AddressError(format!("`{}` is not the URL of a Redis: {}", self.shown(), detail(&error)))
        })?;
        Ok(info.set_tcp_settings(tcp_settings()))
    }
}

pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_and_shown_without_secrets() {
        for (url, shown, server) in [
            ("redis://u:secret@h:1/2", "redis://h:1/2", "h:1"),
            ("rediss://:secret@h:1", "rediss://h:1", "h:1"),
            ("unix:///tmp/redis.sock?db=1&pass=secret", "unix:///tmp/redis.sock", "/tmp/redis.sock"),
            ("redis+unix:///a@b/redis.sock?pass=secret", "redis+unix:///a@b/redis.sock", "/a@b/redis.sock"),
            ("redis+cluster://u:secret@a:1,b:2", "redis+cluster://a:1,b:2", "a:1,b:2"),
            (
                "redis+sentinel://:secret@a:1,b/main/3?sentinel_password=secret",
                "redis+sentinel://a:1,b/main/3",
                "main (sentinels a:1,b:26379)",
            ),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!((address.to_string(), address.server_name()), (shown.to_owned(), server.to_owned()));
            assert!(!format!("{address:?}{:?}", address.location()).contains("secret"));
        }
    }

    #[test]
    fn parameters_keep_their_encoding_until_they_are_read() {
        let Location::Server(info) =
            Address::parse("redis+unix:///tmp/redis.sock?pass=a%26b%25&db=2").unwrap().location
        else {
            panic!("it is a server")
        };
        assert_eq!((info.redis_settings().password(), info.redis_settings().db()), (Some("a&b%"), 2));
    }

    #[test]
    fn other_urls_are_refused_with_a_reason() {
        for (url, reason) in [
            ("localhost:6379", "must begin with"),
            ("http://localhost", "must begin with"),
            ("redis://localhost/zero", "is not the URL of a Redis"),
            ("redis+sentinel://a:1", "does not name a service"),
            ("redis+sentinel://a:1/main/x", "`x` is not the number of a database"),
            ("rediss://a?ssl_ca_certs=/nowhere.pem", "cannot read `/nowhere.pem`"),
            ("rediss://a?ssl_certfile=/nowhere.pem", "go together"),
            ("redis://h?ssl_ca_certs=%2Fdev%2Fnull", "certificates are for rediss:// URLs"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }
}
