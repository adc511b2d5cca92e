//! Where Redis is: a URL.
//!
//! - `redis://`, `rediss://` (TLS), `unix:///path/to/socket`: a server, or any node of a cluster
//! - `redis+cluster://host:port,host:port`, `rediss+cluster://`: a cluster, by several of its nodes
//! - `redis+sentinel://host:port,host:port/service[/db]`, `rediss+sentinel://`: the master that the sentinels name
//!
//! User and password are those of Redis; `sentinel_username` and `sentinel_password` in the query are the sentinels'.
//! With TLS, `ssl_ca_certs`, `ssl_certfile` and `ssl_keyfile` in the query are paths of PEM files.

use std::path::Path;

use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates, TlsMode};

use crate::error::Error;

const KINDS: &str = "redis://, rediss://, unix://, redis+cluster:// or redis+sentinel://";

/// A URL that was understood.
#[derive(Clone)]
pub struct Address {
    pub(crate) place: Place,
    pub(crate) certificates: Option<TlsCertificates>,
    shown: String,
}

#[derive(Clone)]
pub(crate) enum Place {
    Server(ConnectionInfo),
    Cluster(Vec<ConnectionInfo>),
    Sentinel(Sentinel),
}

#[derive(Clone)]
pub(crate) struct Sentinel {
    sentinels: Vec<ConnectionAddr>,
    service: String,
    db: i64,
    is_tls: bool,
    redis_login: (Option<String>, Option<String>),
    sentinel_login: (Option<String>, Option<String>),
}

/// Without what may be secret.
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
    pub fn parse(url: &str) -> Result<Self, Error> {
        let parts = Parts::split(url)?;
        let certificates = parts.certificates()?;
        let shown = parts.shown();
        let place = match parts.kind {
            Kind::Server => Place::Server(parts.server(parts.hosts)?),
            Kind::Cluster => Place::Cluster(
                parts.hosts.split(',').map(|host| parts.server(host)).collect::<Result<_, _>>()?,
            ),
            Kind::Sentinel => Place::Sentinel(parts.sentinel()?),
        };
        Ok(Self { place, certificates, shown })
    }
}

impl Sentinel {
    pub(crate) fn client(
        &self,
        certificates: Option<&TlsCertificates>,
    ) -> redis::RedisResult<SentinelClient> {
        let sentinels = self.sentinels.iter().cloned();
        let mut builder = SentinelClientBuilder::new(sentinels, &self.service, SentinelServerType::Master)?
            .set_client_to_redis_db(self.db);
        if self.is_tls {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
            builder = builder.set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(certificates) = certificates {
            builder = builder.set_client_to_redis_certificates(certificates.clone());
            builder = builder.set_client_to_sentinel_certificates(certificates.clone());
        }
        if let Some(name) = &self.redis_login.0 {
            builder = builder.set_client_to_redis_username(name);
        }
        if let Some(password) = &self.redis_login.1 {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(name) = &self.sentinel_login.0 {
            builder = builder.set_client_to_sentinel_username(name);
        }
        if let Some(password) = &self.sentinel_login.1 {
            builder = builder.set_client_to_sentinel_password(password);
        }
        builder.build()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Server,
    Cluster,
    Sentinel,
}

/// A URL taken apart: URL parsers do not accept several hosts.
struct Parts<'a> {
    kind: Kind,
    scheme: &'a str,
    login: Option<&'a str>,
    hosts: &'a str,
    path: &'a str,
    query: Vec<(&'a str, String)>,
}

impl<'a> Parts<'a> {
    fn split(url: &'a str) -> Result<Self, Error> {
        let expected = || Error::Invalid(format!("the Redis URL must begin with {KINDS}"));
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
        let (place, path) = match rest.find('/') {
            Some(slash) if !scheme.ends_with("unix") => rest.split_at(slash),
            _ => (rest, ""),
        };
        let (login, hosts) = match place.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, place),
        };
        let query = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name, decoded(value)))
            .collect();
        Ok(Self { kind, scheme, login, hosts, path, query })
    }

    fn shown(&self) -> String {
        let kind = match self.kind {
            Kind::Server => "",
            Kind::Cluster => "+cluster",
            Kind::Sentinel => "+sentinel",
        };
        format!("{}{kind}://{}{}", self.scheme, self.hosts, self.path)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }

    /// What is meant for the client of the server.
    fn server(&self, host: &str) -> Result<ConnectionInfo, Error> {
        let login = self.login.map(|login| format!("{login}@")).unwrap_or_default();
        let kept: Vec<String> = (self.query.iter())
            .filter(|(name, _)| !name.starts_with("ssl_"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
        let url = format!("{}://{login}{host}{}{query}", self.scheme, self.path);
        url.into_connection_info().map_err(|error| {
            let reason = error.detail().map_or_else(|| error.category().to_owned(), ToOwned::to_owned);
            Error::Invalid(format!("`{}` is not the URL of a Redis: {reason}", self.shown()))
        })
    }

    fn sentinel(&self) -> Result<Sentinel, Error> {
        let is_tls = self.scheme == "rediss";
        let mut path = self.path.trim_matches('/').splitn(2, '/');
        let service = path.next().filter(|name| !name.is_empty()).map(decoded);
        let service = service.ok_or_else(|| {
            Error::Invalid(format!("`{}` does not name a service: …/service[/db]", self.shown()))
        })?;
        let db = path.next().unwrap_or("0");
        let db = db.parse().map_err(|_| Error::Invalid(format!("`{db}` is not the number of a database")))?;
        let sentinels =
            self.hosts.split(',').map(|host| sentinel_at(host, is_tls)).collect::<Result<_, _>>()?;
        let (name, password) = match self.login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((name, password)) => (some(name), some(password)),
            None => (None, None),
        };
        let sentinel_login =
            (self.get("sentinel_username").map(decoded), self.get("sentinel_password").map(decoded));
        Ok(Sentinel { sentinels, service, db, is_tls, redis_login: (name, password), sentinel_login })
    }

    fn certificates(&self) -> Result<Option<TlsCertificates>, Error> {
        let root_cert = self.get("ssl_ca_certs").map(pem).transpose()?;
        let client_tls = match (self.get("ssl_certfile"), self.get("ssl_keyfile")) {
            (Some(certificate), Some(key)) => {
                Some(ClientTlsConfig { client_cert: pem(certificate)?, client_key: pem(key)? })
            }
            (None, None) => None,
            _ => return Err(Error::Invalid("ssl_certfile and ssl_keyfile go together".to_owned())),
        };
        let is_wanted = root_cert.is_some() || client_tls.is_some();
        if is_wanted && self.scheme != "rediss" {
            return Err(Error::Invalid("certificates are for rediss:// URLs".to_owned()));
        }
        Ok(is_wanted.then_some(TlsCertificates { client_tls, root_cert }))
    }
}

fn sentinel_at(host: &str, is_tls: bool) -> Result<ConnectionAddr, Error> {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "26379"));
    let port =
        port.parse().map_err(|_| Error::Invalid(format!("`{host}` is not a host:port of a sentinel")))?;
    let name = name.trim_matches(['[', ']']).to_owned();
    Ok(if is_tls {
        ConnectionAddr::TcpTls { host: name, port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(name, port)
    })
}

fn some(part: &str) -> Option<String> {
    (!part.is_empty()).then(|| decoded(part))
}

fn pem(path: &str) -> Result<Vec<u8>, Error> {
    std::fs::read(Path::new(path)).map_err(|error| Error::Invalid(format!("cannot read `{path}`: {error}")))
}

/// Percent-encoding undone, where it is some.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &tail[2..]).1,
            None => (bytes.push(*first), rest = tail).1,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_understood_and_shown_without_secrets() {
        for (url, shown) in [
            ("redis://u:secret@h:1/2", "redis://h:1/2"),
            ("rediss://:secret@h:1", "rediss://h:1"),
            ("unix:///tmp/redis.sock?db=1&pass=secret", "unix:///tmp/redis.sock"),
            ("redis+cluster://u:secret@a:1,b:2", "redis+cluster://a:1,b:2"),
            (
                "redis+sentinel://:secret@a:1,b/main/3?sentinel_password=secret",
                "redis+sentinel://a:1,b/main/3",
            ),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.to_string(), shown);
            assert!(!format!("{address:?}").contains("secret"));
        }
    }

    #[test]
    fn a_sentinel_url_has_all_its_parts() {
        let Place::Sentinel(sentinel) =
            Address::parse("redis+sentinel://ada:p%40ss@a:1,b/main/3?sentinel_username=s").unwrap().place
        else {
            panic!("it is a sentinel")
        };
        assert_eq!(sentinel.redis_login, (Some("ada".to_owned()), Some("p@ss".to_owned())));
        assert_eq!(sentinel.sentinel_login, (Some("s".to_owned()), None));
        assert_eq!((sentinel.service.as_str(), sentinel.db), ("main", 3));
        assert_eq!(sentinel.sentinels[1], ConnectionAddr::Tcp("b".to_owned(), 26379));
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
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }
}
