//! The Postgres server to use, parsed from a URL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use switchyard_store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::tls::{Mode, Tls};

const SCHEMA: &str = "switchyard";

/// Time limit of one attempt to connect, unless the URL sets another.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A server, a database and a schema in it, parsed from `postgres://user:password@host:port/database`.
///
/// Besides the driver's parameters, the URL accepts `schema` (`switchyard` by default), and as in libpq `sslmode`
/// (`prefer` by default), `sslrootcert` (the system's roots by default), `sslcert` and `sslkey`.
#[derive(Clone)]
pub struct Target {
    pub(crate) config: Config,
    pub(crate) schema: String,
    name: Arc<str>,
    tls: Tls,
}

/// Hides the password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name).field("schema", &self.schema).finish()
    }
}

/// "Postgres at host:port/database", for messages.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    #[error("a Postgres URL begins with postgres:// or postgresql://")]
    NotAUrl,
    #[error("the Postgres URL: {0}")]
    Malformed(String),
    #[error("the schema `{0}` is not a name: up to 63 lowercase letters, digits and _, no digit first")]
    Schema(String),
    #[error("sslmode is `{0}`, expected {words}", words = Mode::WORDS)]
    SslMode(String),
    #[error("sslcert and sslkey go together")]
    HalfACertificate,
}

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(url: &str) -> Result<Self, InvalidTarget> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(InvalidTarget::NotAUrl);
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut schema = SCHEMA.to_owned();
        let mut tls = Tls::default();
        let mut theirs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = percent_decode_str(value).decode_utf8_lossy();
            match key {
                "schema" => schema = decoded.into_owned(),
                "sslmode" => {
                    tls.mode =
                        Mode::named(&decoded).ok_or_else(|| InvalidTarget::SslMode(decoded.into_owned()))?;
                }
                "sslrootcert" => tls.root_certificates = Some(PathBuf::from(decoded.as_ref())),
                "sslcert" => tls.certificate = Some(PathBuf::from(decoded.as_ref())),
                "sslkey" => tls.key = Some(PathBuf::from(decoded.as_ref())),
                _ => theirs.push(pair),
            }
        }
        check_schema(&schema)?;
        if tls.certificate.is_some() != tls.key.is_some() {
            return Err(InvalidTarget::HalfACertificate);
        }
        let config = parse(&format!("{base}?{}", theirs.join("&")))?;
        let config = prepared(config, &schema, tls.mode);
        let name = name_of(&config).into();
        Ok(Self { config, schema, name, tls })
    }
}

impl Target {
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The same database, another schema.
    pub fn with_schema(&self, schema: &str) -> Result<Self, InvalidTarget> {
        check_schema(schema)?;
        let config = prepared(self.config.clone(), schema, self.tls.mode);
        Ok(Self { config, schema: schema.to_owned(), ..self.clone() })
    }

    pub(crate) fn connector(&self) -> Result<MakeRustlsConnect, StoreError> {
        self.tls.connector()
    }
}

/// Checks that a schema name needs no quotes, because it is also part of the search path.
fn check_schema(schema: &str) -> Result<(), InvalidTarget> {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if begins && schema.len() <= 63 && schema.chars().all(valid) {
        return Ok(());
    }
    Err(InvalidTarget::Schema(schema.to_owned()))
}

fn parse(url: &str) -> Result<Config, InvalidTarget> {
    url.trim_end_matches('?').parse::<Config>().map_err(|e| {
        let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
        InvalidTarget::Malformed(why)
    })
}

fn prepared(mut config: Config, schema: &str, mode: Mode) -> Config {
    config.ssl_mode(mode.as_driver());
    config.options(format!("-c search_path={schema}"));
    if config.get_application_name().is_none() {
        config.application_name("switchyard");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    config
}

fn name_of(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    format!("Postgres at {host}:{port}/{database}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_which_schema() {
        let target: Target =
            "postgres://ada:secret@db.example.com:5433/yard?schema=tenant_a&sslmode=require".parse().unwrap();
        assert_eq!(target.to_string(), "Postgres at db.example.com:5433/yard");
        assert_eq!((target.schema(), target.tls.mode), ("tenant_a", Mode::Require));
        assert_eq!(target.config.get_options(), Some("-c search_path=tenant_a"));
        assert!(!format!("{target:?}").contains("secret"));
        let plain: Target = "postgresql://ada@db/yard".parse().unwrap();
        assert_eq!((plain.schema(), plain.tls.mode), ("switchyard", Mode::Prefer));
        let socket: Target = "postgres://ada@/yard?host=%2Frun%2Fpg&port=5".parse().unwrap();
        assert_eq!(socket.to_string(), "Postgres at /run/pg:5/yard");
    }

    #[test]
    fn a_bad_url_is_told_what_is_wrong_with_it() {
        let refused = |url: &str| url.parse::<Target>().unwrap_err().to_string();
        assert_eq!(refused("mysql://x"), "a Postgres URL begins with postgres:// or postgresql://");
        assert_eq!(
            refused("postgres://x/y?schema=a-b"),
            "the schema `a-b` is not a name: up to 63 lowercase letters, digits and _, no digit first"
        );
        assert_eq!(
            refused("postgres://x/y?sslmode=allow"),
            "sslmode is `allow`, expected disable, prefer, require, verify-ca or verify-full"
        );
        assert_eq!(refused("postgres://x/y?sslcert=a.pem"), "sslcert and sslkey go together");
        assert_eq!(refused("postgres://x/y?colour=red"), "the Postgres URL: unknown option `colour`");
        assert!(refused("postgres://x:port/y").starts_with("the Postgres URL: "));
    }
}
